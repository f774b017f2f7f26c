"""THE PAPER, a file a part. Tensors only, never text.

    mask            who may look at whom                                   3.2.3
    attention       the function, and its scores                           3.2.1
    multi_head      heads, W_Q, W_K, W_V, W_O, the key/value cache         3.2.2
    feed_forward    the position-wise network                              3.3
    embedding       pieces to vectors and back, one matrix                 3.4
    position        sinusoids, learned positions                           3.5
    residual        x + Sublayer(x), normalisation, dropout                3.1, 5.4
    encoder         the stack that reads                                   3.1
    decoder         the stack that writes, and its cache                   3.1
    transformer     all of it                                              Figure 1
    recurrent       where attention came from: the RNN translator, in five files that begin with this name
    build           from a config to either model
    record          what `explain` asks the above to write down

Tensors end in their axes; one legend for the project:

    B batch          S source length    T target length    W beam width
    Q queries        K keys             H heads            C channels per head
    D d_model        F d_ff             V vocabulary       N real pieces of a batch
    A alignment (the additive score's inner width)
    R rows of a search, B times W               P possible continuations
    U units of a recurrent state                G its gates, three or four times U
    J an annotation, both directions' states    L a recurrent decoder's readout
"""
