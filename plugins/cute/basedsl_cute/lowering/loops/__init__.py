"""Loop transformations on `cute` IR: software pipelining and producer loops."""
