import { setTimeout as pause } from 'node:timers/promises';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, timestamp } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { type Condition, findCondition } from '../../resource/object/condition.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Repositories } from './repositories.ts';

const POLL_INTERVAL = 100;
const LONGEST_POLL = 1000;
/** How long, in milliseconds, a server may take to read a repository before the command ends. */
const PATIENCE = 15_000;

/** Repositories of a server, which reads them on its own schedule and reports their state in their status. */
export class ServerRepositories implements Repositories {
  readonly #client: Client;
  readonly #namespace: string;
  readonly #clock: Clock;

  constructor(client: Client, namespace: string, clock: Clock) {
    this.#client = client;
    this.#namespace = namespace;
    this.#clock = clock;
  }

  ready(name: string, patience = PATIENCE): Promise<void> {
    return this.#until(name, undefined, ({ ready }) => ready?.status === 'True', patience);
  }

  async sync(name: string): Promise<void> {
    const key = { namespace: this.#namespace, name };
    const before = await this.#client.get(repositoryKind, key);
    // Times have whole seconds, and a time that was asked for before asks for nothing.
    const last = Date.parse(before.spec.sync?.runOnceAt ?? '');
    const wanted = Math.max(Math.floor(this.#clock.now() / 1000) * 1000, Number.isNaN(last) ? 0 : last + 1000);
    await this.#client.patch(repositoryKind, key, { spec: { sync: { runOnceAt: timestamp(wanted) } } });
    await this.#until(name, readyOf(before), ({ ranAt }) => ranAt >= wanted);
  }

  async look(object: Stored<Repository>): Promise<{ readonly object: Repository; readonly problem?: string }> {
    const ready = readyOf(object);
    return ready?.status === 'False' ? { object, problem: ready.message } : { object };
  }

  /** Waits for a status. A Ready condition that says no, and did not say so before, is the answer as well. */
  async #until(
    name: string,
    before: Condition | undefined,
    done: (status: { readonly ready: Condition | undefined; readonly ranAt: number }) => boolean,
    patience = PATIENCE,
  ): Promise<void> {
    const end = this.#clock.now() + patience;
    for (let wait = POLL_INTERVAL; ; wait = Math.min(wait * 1.5, LONGEST_POLL)) {
      const object = await this.#client.get(repositoryKind, { namespace: this.#namespace, name });
      const ready = readyOf(object);
      if (done({ ready, ranAt: Date.parse(object.status?.observedRunOnceAt ?? '') })) return;
      const late = this.#clock.now() >= end;
      const failed = ready?.status === 'False' && ready.reason === 'Error';
      const news = ready?.message !== before?.message || ready?.lastTransitionTime !== before?.lastTransitionTime;
      if (failed && (news || late)) throw new SluiceError('Unavailable', ready.message);
      if (late) {
        throw new SluiceError(
          'Timeout',
          `the server has not read it within ${patience / 1000} s; "sluice repo get ${name}" shows its status`,
        );
      }
      await pause(wait);
    }
  }
}

function readyOf({ status }: Repository): Condition | undefined {
  return findCondition(status?.conditions, 'Ready');
}
