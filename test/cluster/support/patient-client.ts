import { setTimeout as delay } from 'node:timers/promises';
import type { Answer, KubeApi, SendOptions } from '../../support/api/kube-api.ts';

/** Milliseconds after which a request without a response is repeated, between two attempts, and for all of them. */
const ATTEMPT_TIMEOUT_MS = 8000;
const BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 1000;
const MAX_TRIES_MS = 120_000;
/** Responses after which a client of Kubernetes repeats a request. */
const RETRIED = new Set([429, 500, 502, 503, 504]);
/** In the words of Porch: an attempt whose response was lost still goes on. */
const IN_PROGRESS = 'another request is already in progress';

export interface PatientResult {
  readonly answer: Answer;
  readonly attempts: number;
}

/** Sends requests as a client does that does not give up: it repeats those that failed on the way, and those that the server asks to repeat. */
export class PatientClient {
  readonly #api: KubeApi;
  /** Number of failed attempts by cause. */
  readonly failures = new Map<string, number>();

  constructor(api: KubeApi) {
    this.#api = api;
  }

  /** Throws if no attempt got a response that counts. */
  async send(method: string, path: string, options: SendOptions = {}): Promise<PatientResult> {
    const end = Date.now() + MAX_TRIES_MS;
    for (let attempts = 1; ; attempts += 1) {
      const { answer, failure } = await this.#attempt(method, path, options);
      if (answer !== undefined) return { answer, attempts };
      const [cause] = failure.split('\n');
      const key = (cause ?? '').slice(0, 120);
      this.failures.set(key, (this.failures.get(key) ?? 0) + 1);
      if (Date.now() > end) throw new Error(`${method} ${path} failed ${attempts} times, at last: ${failure}`);
      await delay(Math.min(BACKOFF_MS * 2 ** (attempts - 1), MAX_BACKOFF_MS) * (0.5 + Math.random()));
    }
  }

  async #attempt(
    method: string,
    path: string,
    options: SendOptions,
  ): Promise<{ readonly answer?: Answer; readonly failure: string }> {
    const abandoned = new AbortController();
    try {
      const late = delay(ATTEMPT_TIMEOUT_MS, undefined, { signal: abandoned.signal });
      const answer = await Promise.race([
        this.#api.send(method, path, options),
        late.then(() => Promise.reject(new Error('no response in time'))),
      ]);
      const isRepeated = RETRIED.has(answer.status) || answer.text.includes(IN_PROGRESS);
      return isRepeated ? { failure: `${answer.status} ${reasonOf(answer)}` } : { answer, failure: '' };
    } catch (error) {
      return { failure: String(error) };
    } finally {
      abandoned.abort();
    }
  }
}

function reasonOf({ body, text }: Answer): string {
  const message = (body as { readonly message?: string } | undefined)?.message ?? text;
  return message.replaceAll(/[0-9a-f-]{8,}|\d+/g, '#');
}
