"""HTTP: a translation server that existing clients already speak to.

    settings      `Settings`: what `dragoman serve` may be told
    run           from settings to a server that listens; `worker` runs it, `supervisor` keeps several of them up
    models        the models that are served, by direction
    batcher       requests that arrive together become batches, fairly
    service       `Service`: all that the wire protocols call
    refusal       `Refusal`: an answer that is no success, in each protocol's own shape
    gate          the ASGI door: bounded bodies, time limits, disconnects, headers, log and counters of each request
    keys, rate    who may come in, how often, and how much they had
    metrics       what Prometheus asks for
    access_log    a JSON line a request
    protocol      HTTP on a connection: uvicorn's, with deadlines and a patient end
    app, routes   the routes put together, and their names

    libretranslate, deepl, files    the wire protocols; insight and pages are what the page asks for
    fields, direction               what a request says, in which languages; glossaries, suggestions: what it leaves
    spec                            all of it as OpenAPI

A wire protocol is a module with `routes(service) -> list[BaseRoute]`; `app` puts them together. Its handlers

1. parse the request (the gate has read the body already: bounded, whole, so `await request.body()` never waits; a body
   that was cut off never arrives);
2. `client = service.admit(request, key)`: the key as the protocol carries it, or None. Refuses a wrong or missing key
   and whoever comes too often. Once a request;
3. `await service.translate(texts, source, target, client=client, ...)`: a `Translation` a text, in order. It checks
   sizes, languages and `alternatives`, goes through the batcher, and is cancelled if the client hangs up.

All of these raise `Refusal(status, message)`, and so may a handler; `app` renders it as `{"error": message}`, and
under /v2/ as `{"message": message}`. A `DragomanError` becomes a 400 with its text. Handlers catch neither.

Importing this room loads neither torch nor CTranslate2.
"""
