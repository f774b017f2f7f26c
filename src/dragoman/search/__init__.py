"""Search over ids, for anything with `encode` and `step` (searchable).

    beam            beam search; frontier are its open hypotheses, history its tree          6.1
    sampling        drawing a translation
    mixture         several models searched as one
    examples        the pairs of a translation memory, and which of them are like a sentence
    recall          a model that recalls examples at every step
    phrases         how much of a translation stands in those of examples alike
    constraints     phrases that must and must not appear; allocation shares the beam among them
    rules           what may be written next
    length          the length penalty, the most pieces                                      6.1
    hypothesis      what is found

The numbers are sections of the paper.
"""
