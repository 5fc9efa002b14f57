import basedsl_cute as cute

cute.printf("hello")
