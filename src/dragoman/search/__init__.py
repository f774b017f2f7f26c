"""Search over ids, for anything with `encode` and `step` (searchable).

    beam            beam search; frontier are its open hypotheses, history its tree          6.1
    sampling        drawing a translation
    mixture         several models searched as one
    recall          a model that recalls examples, the nearest of a translation memory
    constraints     phrases that must and must not appear; allocation shares the beam among them
    rules           what may be written next
    length          the length penalty, the most pieces                                      6.1
    hypothesis      what is found

The numbers are sections of the paper.
"""
