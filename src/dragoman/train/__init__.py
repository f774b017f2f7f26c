"""From pairs to a model folder.

    request         what a run was asked for, and the file that resumes it
    run             one run: look, plan, prepare, train, finish
    plan            what to train for this data, machine and time
    prepare         pieces, ids on disk, a validation set
    neighbours      where embeddings begin
    feed            batches for the loop
    loop            the steps; it alone holds progress
    objective       from ids to loss, around any model
    loss            label-smoothed cross-entropy                          5.4
    schedule        the learning rate                                     5.3
    optimizer       Adam, AdamW, Muon                                     5.3
    averaging       EMA, the mean of the last weights                     6.1
    checkpoint      files that are whole or not there
    lora            low-rank adapters
    hardware        what precision and compiling gain here; tiles: where bfloat16 would end the process
    distributed     ranks that torchrun started
    interrupt       Ctrl-C and SIGTERM
    validate        loss, BLEU, chrF and samples
    finish          which weights become the model, and its folder
    journal         what a run tells, through trackers (files), progress (people, in the wording), window and curves

The numbers are sections of the paper.
"""
