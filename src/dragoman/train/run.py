"""One training run from recipe to model folder: look, plan, prepare, train, finish. Stopped anywhere, it goes on.

output/                 the model folder, usable from the first validation on
output/training.jsonl   what happened; curves.png draws it
output/run/             what resuming needs: run.json, checkpoints, the weights that may be averaged
"""

import math
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from dragoman.bundle import Bundle, find
from dragoman.bundle.folder import CONFIG
from dragoman.errors import ConfigError, DataError, DragomanError, TrainingError
from dragoman.model.build import TranslationModel, build_model
from dragoman.recipe import Recipe, TrainConfig
from dragoman.settings import fill, to_mapping
from dragoman.text.corpus import spool
from dragoman.text.diagnosis import counted
from dragoman.text.doctor import examine
from dragoman.text.tokenizer import Tokenizer
from dragoman.train import checkpoint, hardware
from dragoman.train.base import check_teaching, find_teachers, initial_recipe, pieces_of
from dragoman.train.checkpoint import Progress
from dragoman.train.distributed import World, check_shard, distribute, join_world, leave_world
from dragoman.train.feed import PairFeed, to_tensors
from dragoman.train.finish import Finisher, TrainingResult
from dragoman.train.journal import Journal
from dragoman.train.loop import Loop
from dragoman.train.lora import adapt
from dragoman.train.neighbours import neighbouring
from dragoman.train.objective import Objective
from dragoman.train.optimizer import make_optimizers
from dragoman.train.plan import Plan, make_plan, measure_operations_per_second, size_of
from dragoman.train.prepare import Prepared, prepare, words_met
from dragoman.train.request import Request, RunFile
from dragoman.train.trackers import Tracker
from dragoman.train.validate import Validation


def train_model(
    request: Request, *, resume: bool = False, plan_only: bool = False, trackers: Sequence[Tracker] = ()
) -> TrainingResult | Plan:
    """Run what is requested to its end, or to a signal. Events go to `trackers` besides the usual ones."""
    started = time.monotonic()
    world = join_world()
    check_shard(world, request.recipe.train.shard)
    try:
        with Journal(request, world, trackers) as journal, ExitStack() as held:
            if plan_only:
                with tempfile.TemporaryDirectory() as passing:
                    return _look_and_plan(request, Path(passing), journal, world)[1]
            run_file = RunFile(request.output / "run" / "run.json")
            if world.is_first:
                run_file.check_folder(resume)
                held.enter_context(run_file.held())
                _begin(request, run_file, resume, journal, world)
            world.wait()
            request, plan = run_file.read(request)
            try:
                return _run(request, plan, world, journal, started)
            except DragomanError:
                learned = checkpoint.latest(run_file.path.parent) or (request.output / CONFIG).exists()
                if world.is_first and not learned:
                    run_file.forget()
                raise
    finally:
        leave_world(world)


def _begin(request: Request, run_file: RunFile, resume: bool, journal: Journal, world: World) -> None:
    """Leave a run file that says what to train: the one that is there, or that of a new plan."""
    if run_file.exists():
        if "train.max_steps" in request.asked:
            run_file.end_at(request, journal.say)
    else:
        if resume:
            journal.say("there is nothing to resume yet: starting from the beginning")
        request, plan = _look_and_plan(request, run_file.path.parent, journal, world)
        # Measured once: a resumed run, or another rank, that measured anew might not take the same steps.
        precision = str(hardware.choose_precision(plan.recipe.train, world.device)).removeprefix("torch.")
        settled = fill(TrainConfig, {**to_mapping(plan.recipe.train), "precision": precision})
        run_file.write(request, replace(plan, recipe=replace(plan.recipe, train=settled)))


def _look_and_plan(request: Request, folder: Path, journal: Journal, world: World) -> tuple[Request, Plan]:
    """See what the data are like, and settle what the recipe leaves open. Standard input is copied into `folder`."""
    data = request.recipe.data
    if not data.train:
        raise TrainingError("no corpus to train on: name a TSV, TMX or JSON lines file, or --source and --target")
    if request.recipe.train.lora and not request.init:
        raise ConfigError("--lora fine-tunes a model that has learned: name it with --init, or leave out --lora")
    check_teaching(request)
    corpora = tuple(spool(corpus, folder) if corpus.path == "-" else corpus for corpus in data.train)
    request = replace(request, recipe=replace(request.recipe, data=replace(data, train=corpora)))
    base = Bundle.open(find(request.init)) if request.init else None
    recipe = initial_recipe(request, base)
    data = recipe.data
    diagnosis = examine(data.train, data.valid, data.test, max_pieces=recipe.model.max_length, max_ratio=data.max_ratio)
    size = size_of(diagnosis, both_ways=any(corpus.both_ways for corpus in data.train))
    if not size.pairs:
        why = [f"{found.what}. {found.advice}" for found in diagnosis.problems if found.kind != "nothing-left"]
        raise DataError(f"no pair is left to train on: {why[0] if why else 'all were dropped'}")
    journal.tell_diagnosis(diagnosis)
    if request.strict and diagnosis.problems:
        number = counted(len(diagnosis.problems), "problems")
        raise TrainingError(f"{number} in the data, first: {diagnosis.problems[0].what}")
    plan = make_plan(
        recipe,
        size,
        operations_per_second=world.size * measure_operations_per_second(device=world.device),
        budget_seconds=request.budget_seconds,
        keep_shape=request.keep_shape or bool(request.init),
        asked=request.asked,
        vocab_size=pieces.target_side.vocab_size if (pieces := pieces_of(request)) else 0,
    )
    journal.tell_plan(plan)
    return request, plan


def _run(request: Request, plan: Plan, world: World, journal: Journal, started: float) -> TrainingResult:
    recipe, folder, asked = plan.recipe, request.output / "run", request.recipe.train
    base = Bundle.open(find(request.init)) if request.init else None
    prepared = _prepared_by_one_first(recipe, folder, pieces_of(request), world, journal)
    recipe = replace(recipe, model=replace(recipe.model, vocab_size=prepared.tokenizer.target_side.vocab_size))
    found = checkpoint.latest(folder)
    model = _make_model(recipe, base).to(world.device)
    if base is None and not found and recipe.train.embedding_start == "neighbours":
        journal.say("embeddings: pieces that share pairs begin as neighbours")
        _make_neighbours(model, prepared, recipe, world)
    precision = hardware.choose_precision(recipe.train, world.device)
    objective = Objective(
        model,
        prepared.tokenizer.padding_id,
        recipe.train.label_smoothing,
        recipe.train.r_drop,
        precision,
        find_teachers(request, prepared.tokenizer, prepared.directions, world.device),
        recipe.train.distillation,
    )
    feed = PairFeed(prepared.train, prepared.tokenizer, recipe, world.size)
    compiled = _compile_if_it_pays(recipe, plan, objective, feed, world, journal, folder / "compiled")
    validation = Validation(prepared, recipe, world.device)
    known_words = words_met(recipe, prepared, base) if world.is_first else None
    finisher = Finisher(request, plan, recipe, prepared, validation, journal, known_words)
    limits = (asked.max_steps, math.ceil(asked.max_epochs * feed.num_batches(0)))
    most_steps = min(filter(None, limits), default=0)
    # Only now that the pairs are pieces is it known how many steps an epoch has.
    total_steps = recipe.train.max_steps if request.budget_seconds or not most_steps else most_steps
    fresh = Progress(total_steps=total_steps, seconds=time.monotonic() - started)
    tensors, progress = checkpoint.load(found) if found else ({}, fresh)
    if not request.budget_seconds:
        progress = progress.with_(total_steps=total_steps)
    reopened = progress.finished == "finished" and progress.step < progress.total_steps
    if progress.finished == "interrupted" or reopened:
        progress = progress.with_(finished="")
    journal.start(progress, model, prepared, recipe, world, precision, compiled)
    loop = Loop(
        objective=distribute(objective, world, recipe.train.shard),
        model=model,
        optimizers=make_optimizers(model, recipe.train, world),
        feed=feed,
        validator=validation,
        config=recipe.train,
        d_model=recipe.model.d_model,
        folder=folder,
        world=world,
        tell=journal.tell,
        progress=progress,
        log_bytes=journal.log_bytes,
        deadline_seconds=request.budget_seconds,
        most_steps=most_steps,
        on_better=finisher.keep if world.is_first else None,
    )
    if found:
        loop.restore(tensors)
    try:
        progress = loop.run()
    except RuntimeError as error:
        if not hardware.is_out_of_memory(error):
            raise
        raise TrainingError(
            f"a step of {recipe.train.batch_tokens:,} target pieces does not fit into memory: go on with --resume "
            f"where there is more, or begin anew with --set train.micro_batches={2 * recipe.train.micro_batches}"
        ) from error
    journal.end(progress)
    return finisher.finish(progress, loop.weights) if world.is_first else finisher.nothing(progress)


def _prepared_by_one_first(
    recipe: Recipe, folder: Path, pieces: Tokenizer | None, world: World, journal: Journal
) -> Prepared:
    """One process of a machine does the work and the others find it done."""

    def work() -> Prepared:
        return prepare(recipe, folder, tokenizer=pieces, say=journal.say)

    if world.is_first_here:
        prepared = work()
        world.wait()
        return prepared
    world.wait()
    return work()


def _make_model(recipe: Recipe, base: Bundle | None) -> TranslationModel:
    torch.manual_seed(recipe.train.seed)
    model = build_model(recipe.model)
    if base is not None:
        model.load_state_dict(base.load_model().state_dict())
    if recipe.train.lora:
        adapt(model, recipe.train.lora)
    return model


def _make_neighbours(model: TranslationModel, prepared: Prepared, recipe: Recipe, world: World) -> None:
    """The first rank looks at the pairs, and all have what it found."""
    shape = (recipe.model.vocab_size, recipe.model.d_model)
    found_VD = neighbouring(prepared.train, *shape, recipe.train.seed) if world.is_first else torch.zeros(shape)
    vectors_VD = world.sum(found_VD.to(world.device))
    with torch.no_grad():
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.pieces.weight.copy_(vectors_VD)


def _compile_if_it_pays(
    recipe: Recipe, plan: Plan, objective: Objective, feed: PairFeed, world: World, journal: Journal, kept: Path
) -> bool:
    """As the recipe says; for `auto`, if a run this long would earn back the warm-up and a step gets faster.

    What was measured once is `kept`: a resumed run that decided anew might not take the same steps.
    """
    if recipe.train.compile == "off" or (recipe.train.compile == "auto" and plan.seconds < hardware.EARNS_BACK_SECONDS):
        return False
    if recipe.model.architecture == "recurrent":  # blocks are what is compiled, and it has none
        return False
    batch = to_tensors(feed.parts(0, 0, 0, 1, 1)[0], world.device)

    def step(model: nn.Module) -> None:
        probe = Objective(model, objective.padding_id, objective.smoothing, precision=objective.precision)
        probe(*batch).smoothed.backward()

    def make_model() -> nn.Module:
        return build_model(recipe.model).to(world.device)

    if recipe.train.compile == "on":
        hardware.check_compiling(step, make_model)
    elif kept.exists():
        if kept.read_text() != "on":
            return False
    else:
        faster, why = hardware.compiling_pays(step, make_model)
        pays = world.share(float(faster)) > 0
        word = "on" if pays else "off"
        journal.say(f"torch.compile: {why}: {word}")
        if world.is_first:
            kept.write_text(word)
        world.wait()
        if not pays:
            return False
    hardware.compile_blocks(objective.model)
    return True
