/**
 * Attributes of a span. They leave the process: never names of Secrets, values of queries, users, addresses or messages of errors.
 */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** A span in progress. */
export interface OpenSpan {
  set(attributes: SpanAttributes): void;
  rename(name: string): void;
}

declare const brand: unique symbol;

/** Identifies a span in progress, so that work that is done elsewhere on its behalf continues its trace. */
export interface TraceContext {
  readonly [brand]: true;
}

/** The origin of a span, where it is not the span in whose work it begins. */
export interface SpanOrigin {
  /** Default: an internal step. */
  readonly kind?: 'server' | 'client';
  /** Milliseconds since the epoch. Default: now. */
  readonly startedAtMs?: number;
  /** The spans on whose behalf the work is done: the first is the parent, the others are linked. */
  readonly origins?: readonly (TraceContext | undefined)[];
  /** The `traceparent` header of the caller. The span continues that trace if the caller is trusted, and is linked to it otherwise. */
  readonly caller?: { readonly traceparent: string; readonly isTrusted: boolean };
}

/** Records spans. The implementation is loaded only if tracing is on. */
export interface Tracer {
  /** See `traced`. */
  run<Result>(
    name: string,
    attributes: SpanAttributes,
    work: (span: OpenSpan) => Promise<Result>,
    origin: SpanOrigin,
  ): Promise<Result>;
  current(): TraceContext | undefined;
  inTrace<Result>(context: TraceContext | undefined, work: () => Result): Result;
}

const NO_SPAN: OpenSpan = { set: () => undefined, rename: () => undefined };
const HERE: SpanOrigin = {};

/** One for the process, as its standard output is. */
let tracer: Tracer | undefined;

/** Turns tracing on, or off with undefined. */
export function setTracer(next: Tracer | undefined): void {
  tracer = next;
}

/**
 * Runs work as a span: a child of the span in whose work it begins, unless `origin` names another one. Its error ends the span and is
 * thrown. Without tracing it only calls `work`.
 */
export function traced<Result>(
  name: string,
  attributes: SpanAttributes,
  work: (span: OpenSpan) => Promise<Result>,
  origin: SpanOrigin = HERE,
): Promise<Result> {
  return tracer === undefined ? work(NO_SPAN) : tracer.run(name, attributes, work, origin);
}

/** The span that is in progress here; undefined without tracing. */
export function currentTrace(): TraceContext | undefined {
  return tracer?.current();
}

/** Runs work on behalf of another span; with undefined, on behalf of none, such as the loop of a queue that serves many. */
export function inTrace<Result>(context: TraceContext | undefined, work: () => Result): Result {
  return tracer === undefined ? work() : tracer.inTrace(context, work);
}
