import basedsl_cute as cute

cute.arch.thread_idx()
