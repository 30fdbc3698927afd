import { messageOf } from '../../foundation/sluice-error.ts';
import { textResponse } from '../http/answer.ts';
import { isOn } from '../http/request-path.ts';
import type { PathHandler } from '../request/path-handler.ts';

/** Throws, or rejects, with the problem; may return a text for `?verbose`. Quick, and without side effects: any client may cause it at any rate. */
export type HealthCheck = () => unknown;

/** The purpose of a check: whether the process works, or whether it can serve requests now. */
export type Probe = 'livez' | 'readyz';

const TEXT = 'text/plain; charset=utf-8';

/** The named checks behind `/livez`, `/readyz` and the older `/healthz`. */
export class HealthChecks {
  readonly #checks: Readonly<Record<Probe, Map<string, HealthCheck>>> = { livez: new Map(), readyz: new Map() };
  readonly #failedStatus: number;

  /** `failedStatus` is the HTTP status of a failed probe: 500 as of a kube-apiserver, or 503 for replicas of which one serves. */
  constructor(failedStatus: 500 | 503 = 500) {
    this.#failedStatus = failedStatus;
  }

  /** Adds a check; the returned function removes it. A server that is not live is not ready either. */
  add(probe: Probe, name: string, check: HealthCheck): () => void {
    this.#checks[probe].set(name, check);
    return () => {
      this.#checks[probe].delete(name);
    };
  }

  /** The result without details: for every client. */
  readonly publicPaths: PathHandler = ({ path, query }) => {
    const probe = probeOf(path);
    return probe === undefined || isOn(query, 'verbose') || query.has('exclude') ? undefined : this.#plain(probe);
  };

  /** `?verbose`, `?exclude=<check>` and `/livez/<check>`: for users who may read the path. */
  readonly detailPaths: PathHandler = async ({ path, query }) => {
    const [, head = '', name, ...rest] = path.split('/');
    const probe = probeOf(`/${head}`);
    if (probe === undefined || rest.length > 0) return undefined;
    const excluded = new Set(query.getAll('exclude'));
    const checks = this.#of(probe).filter(([known]) => (name === undefined ? !excluded.has(known) : known === name));
    if (name !== undefined && checks.length === 0) return undefined;
    const results = await Promise.all(checks.map(([known, check]) => run(known, check)));
    const lines = results.map(({ name: known, problem, state }) =>
      problem === undefined
        ? `[+]${known} ok${state === undefined ? '' : `: ${state}`}`
        : `[-]${known} failed: ${problem}`,
    );
    const failed = results.some(({ problem }) => problem !== undefined);
    return textResponse(
      failed ? this.#failedStatus : 200,
      TEXT,
      [...lines, `${head} check ${failed ? 'failed' : 'passed'}`, ''].join('\n'),
    );
  };

  async #plain(probe: Probe) {
    const results = await Promise.all(this.#of(probe).map(([name, check]) => run(name, check)));
    const failed = results.filter(({ problem }) => problem !== undefined).map(({ name }) => name);
    if (failed.length === 0) return textResponse(200, TEXT, 'ok');
    return textResponse(this.#failedStatus, TEXT, `failed: ${failed.join(', ')}\n`);
  }

  #of(probe: Probe): [string, HealthCheck][] {
    const live = [...this.#checks.livez];
    return probe === 'livez' ? live : [...live, ...this.#checks.readyz];
  }
}

/** A check that fails once no beat has come for `timeoutMs` milliseconds: for loops that must not stop. */
export class Heartbeat {
  readonly #now: () => number;
  readonly #timeoutMs: number;
  #last: number;

  constructor(now: () => number, timeoutMs: number) {
    this.#now = now;
    this.#timeoutMs = timeoutMs;
    this.#last = now();
  }

  beat(): void {
    this.#last = this.#now();
  }

  readonly check: HealthCheck = () => {
    const silent = this.#now() - this.#last;
    if (silent > this.#timeoutMs) throw new Error(`no sign of life for ${Math.round(silent / 1000)} s`);
  };
}

interface Checked {
  readonly name: string;
  readonly problem?: string;
  readonly state?: string;
}

async function run(name: string, check: HealthCheck): Promise<Checked> {
  try {
    const state = await check();
    return typeof state === 'string' ? { name, state } : { name };
  } catch (error) {
    return { name, problem: messageOf(error) };
  }
}

function probeOf(path: string): Probe | undefined {
  if (path === '/livez' || path === '/healthz') return 'livez';
  return path === '/readyz' ? 'readyz' : undefined;
}
