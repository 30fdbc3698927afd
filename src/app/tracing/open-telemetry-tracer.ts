import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  isSpanContextValid,
  type Link,
  type Tracer as OpenTelemetry,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import { ERROR_CODES, isSluiceError } from '../../foundation/sluice-error.ts';
import type { OpenSpan, SpanAttributes, SpanOrigin, TraceContext, Tracer } from '../../foundation/tracing/traced.ts';

/** A span in progress, and what the spans below it have in common with it. */
interface Scope {
  readonly span: Span;
  readonly context: Context;
  readonly inherited: SpanAttributes;
}

/** Spans below one with these attributes have them too, so that a search finds them; the address of a repository is in no span. */
const INHERITED: ReadonlySet<string> = new Set(['sluice.repository', 'sluice.repository_id']);
const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;

/** Records spans by OpenTelemetry. The span in progress follows asynchronous calls. */
export class OpenTelemetryTracer implements Tracer {
  readonly #spans: OpenTelemetry;
  readonly #scopes = new AsyncLocalStorage<Scope | undefined>();

  constructor(spans: OpenTelemetry) {
    this.#spans = spans;
  }

  current(): TraceContext | undefined {
    return this.#scopes.getStore() as unknown as TraceContext | undefined;
  }

  inTrace<Result>(context: TraceContext | undefined, work: () => Result): Result {
    return this.#scopes.run(context as unknown as Scope | undefined, work);
  }

  run<Result>(
    name: string,
    attributes: SpanAttributes,
    work: (span: OpenSpan) => Promise<Result>,
    origin: SpanOrigin,
  ): Promise<Result> {
    const { span, context, inherited } = this.#start(name, attributes, origin);
    const open: OpenSpan = {
      set: (more) => void span.setAttributes(more),
      rename: (next) => void span.updateName(next),
    };
    return this.#scopes.run({ span, context, inherited }, async () => {
      try {
        return await work(open);
      } catch (error) {
        fail(span, error);
        throw error;
      } finally {
        span.end();
      }
    });
  }

  #start(name: string, attributes: SpanAttributes, { kind, startedAtMs, origins, caller }: SpanOrigin): Scope {
    const links: Link[] = [];
    let parent: Scope | undefined;
    let others: readonly Scope[] = [];
    let above = ROOT_CONTEXT;
    if (caller !== undefined) {
      const remote = remoteOf(caller.traceparent);
      if (remote !== undefined && caller.isTrusted) above = trace.setSpanContext(ROOT_CONTEXT, remote);
      else if (remote !== undefined) links.push({ context: remote });
    } else if (origins !== undefined) {
      const known = origins.filter((one) => one !== undefined) as unknown as Scope[];
      parent = known.find(isSampled) ?? known[0];
      others = known.filter((one) => one !== parent);
      links.push(...others.map(({ span }) => ({ context: span.spanContext() })));
    } else {
      parent = this.#scopes.getStore();
    }
    above = parent?.context ?? above;
    const inherited = parent?.inherited ?? {};
    const span = this.#spans.startSpan(
      name,
      {
        attributes: { ...inherited, ...attributes },
        links,
        ...(kind === undefined ? {} : { kind: KINDS[kind] }),
        ...(startedAtMs === undefined ? {} : { startTime: startedAtMs }),
      },
      above,
    );
    // A trace with a part of its work elsewhere leads there.
    for (const other of others) other.span.addLink({ context: span.spanContext() });
    const own = Object.entries(attributes).filter(([key]) => INHERITED.has(key));
    return {
      span,
      context: trace.setSpan(ROOT_CONTEXT, span),
      inherited: own.length === 0 ? inherited : { ...inherited, ...Object.fromEntries(own) },
    };
  }
}

function isSampled({ span }: Scope): boolean {
  return (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;
}

/** Undefined if the header is invalid. `tracestate` is not read: it is data of other systems. */
function remoteOf(traceparent: string): SpanContext | undefined {
  const parsed = parseTraceParent(traceparent);
  if (parsed === null || !isSpanContextValid(parsed)) return undefined;
  return { ...parsed, traceFlags: parsed.traceFlags & TraceFlags.SAMPLED, isRemote: true };
}

/** Without the message of the error, which can contain addresses and names. A refusal of the request is no failure of the server. */
function fail(span: Span, error: unknown): void {
  const isKnown = isSluiceError(error);
  span.setAttribute('error.type', isKnown ? error.code : error instanceof Error ? error.name : 'unknown');
  if (!isKnown || ERROR_CODES[error.code].status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
}
