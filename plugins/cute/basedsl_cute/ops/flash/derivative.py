def derivative(value, source):
    raise NotImplementedError
