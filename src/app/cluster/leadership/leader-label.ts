import { isSluiceError, messageOf, unlessMissing } from '../../../foundation/sluice-error.ts';
import { sleep } from '../../../foundation/time/backoff.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import type { Client } from '../../../resource/client/client.ts';
import { podKind } from '../../../resource/kinds/core/pod.ts';
import type { ObjectKey } from '../../../resource/object/object.ts';

/** The label that the Service selects, on the pod of the leader alone. */
const LEADER_LABEL = 'sluice.dev/leader';

/** Milliseconds between two checks of the leader, since another writer can change labels. */
const CHECK_MS = 10_000;
/** Milliseconds after a failure that can pass. */
const RETRY_MS = 1000;
const REQUEST_TIMEOUT_MS = 5000;
/** Milliseconds for the removal of the label at the end. */
const MAX_STOP_MS = 1000;

export interface LeaderLabelOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** The pod of this process. */
  readonly pod: ObjectKey;
  /** True while the process holds the Lease. */
  readonly isLeader: () => boolean;
  readonly warn: (subject: string, message: string) => void;
}

/**
 * Keeps the label by which the Service finds the leader: off this pod until the process leads and serves, then on this pod and on no other
 * one of the namespace. Failures are reported once and retried; the work of the process does not depend on the label.
 */
export class LeaderLabel {
  readonly #options: LeaderLabelOptions;
  readonly #limit = new AbortController();
  #serves = false;
  /** A restarted container has the labels that the pod had before. */
  #isClear = false;
  #isStopped = false;
  #wake = new AbortController();
  #loop: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  #problem = '';

  constructor(options: LeaderLabelOptions) {
    this.#options = options;
  }

  /** Removes the label from this pod in the background. */
  start(): void {
    this.#loop ??= this.#run();
  }

  /** The leader serves: the label is set in the background. */
  lead(): void {
    this.#serves = true;
    this.#wake.abort();
  }

  /** Removes the label of a leader. Resolves when that is done or has failed, or after a second; never rejects. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#isStopped = true;
    this.#wake.abort();
    const done = new AbortController();
    await Promise.race([
      this.#loop?.finally(() => done.abort()) ?? Promise.resolve(),
      sleep(this.#options.clock, MAX_STOP_MS, done.signal),
    ]);
    this.#limit.abort();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      this.#wake = new AbortController();
      const delayMs = await this.#try(() => this.#reconcile());
      if (!this.#isStopped) await sleep(this.#options.clock, delayMs, this.#wake.signal);
    }
    if (this.#serves)
      await this.#try(async () => {
        // A pod that was deleted by force is gone before its process, and its label with it.
        await unlessMissing(this.#patch(this.#options.pod, null));
      });
  }

  /** Returns the milliseconds until the next attempt. */
  async #try(work: () => Promise<void>): Promise<number> {
    try {
      await work();
      this.#problem = '';
      return CHECK_MS;
    } catch (error) {
      this.#report(messageOf(error));
      return isSluiceError(error, 'NotFound') || isSluiceError(error, 'Refused') ? CHECK_MS : RETRY_MS;
    }
  }

  async #reconcile(): Promise<void> {
    const { pod, isLeader } = this.#options;
    if (!this.#serves) {
      if (this.#isClear) return;
      await this.#patch(pod, null);
      this.#isClear = true;
      return;
    }
    // The lease was lost: from now on the label is the business of another replica.
    if (!isLeader()) return;
    let failure: { readonly error: unknown } | undefined;
    let isSet = false;
    try {
      isSet = await this.#removeFromOthers();
    } catch (error) {
      failure = { error };
    }
    if (!isSet && isLeader()) await this.#patch(pod, 'true');
    if (failure !== undefined) throw failure.error;
  }

  /** Returns whether this pod has the label. */
  async #removeFromOthers(): Promise<boolean> {
    const { client, pod } = this.#options;
    const { namespace } = pod;
    const { items } = await this.#within((signal) =>
      client.list(podKind, { namespace: namespace ?? '', labelSelector: LEADER_LABEL, signal }),
    );
    let isSet = false;
    for (const { metadata } of items) {
      if (metadata.name === pod.name) isSet = metadata.labels?.[LEADER_LABEL] === 'true';
      else
        await this.#patch({ namespace, name: metadata.name }, null).catch((error: unknown) => {
          if (!isSluiceError(error, 'NotFound')) throw error;
        });
    }
    return isSet;
  }

  async #patch(pod: ObjectKey, value: 'true' | null): Promise<void> {
    const patch = { metadata: { labels: { [LEADER_LABEL]: value } } };
    await this.#within((signal) => this.#options.client.patch(podKind, pod, patch, { signal }));
  }

  async #within<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const late = new AbortController();
    const cancel = this.#options.clock.schedule(REQUEST_TIMEOUT_MS, () => late.abort());
    try {
      return await work(AbortSignal.any([late.signal, this.#limit.signal]));
    } finally {
      cancel();
    }
  }

  #report(cause: string): void {
    const { pod, warn } = this.#options;
    if (cause === this.#problem) return;
    this.#problem = cause;
    warn(
      'leader label',
      `cannot keep the label ${LEADER_LABEL} of Pod ${pod.namespace}/${pod.name}, by which the Service finds the leader: ${cause}; ` +
        'check that POD_NAME and POD_NAMESPACE name this pod, and that its ServiceAccount may list and patch pods (deploy/base/roles.yaml); retrying',
    );
  }
}
