"""How good a model is.

    paper           is it the paper's model?
    scores          a model or an output on a test set (testset) -> evaluation
    quality         by sentence length; signs of trouble
    compare         is the difference more than chance?
    report          one offline page; plots and threads draw it

Only `paper` needs torch.
"""
