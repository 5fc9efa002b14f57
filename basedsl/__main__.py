"""`python -m basedsl` is the command line."""

import sys

from basedsl.cli import main

sys.exit(main())
