import type { Session } from '../../app/session/session.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';
import { keyOf, keyText } from '../../resource/object/object.ts';
import type { Repositories } from './repositories.ts';

/** Repositories of a session, which are opened when they are needed. */
export class FolderRepositories implements Repositories {
  readonly #session: Session;
  readonly #namespace: string;

  constructor(session: Session, namespace: string) {
    this.#session = session;
    this.#namespace = namespace;
  }

  async ready(name: string, patience?: number): Promise<void> {
    if (patience === undefined) return this.sync(name);
    const signal = AbortSignal.timeout(patience);
    try {
      await this.#session.openRepository(this.#idOf(name), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new SluiceError('Timeout', `it could not be read within ${patience / 1000} s`, { cause: error });
    }
  }

  /** What is opened is read. */
  sync(name: string): Promise<void> {
    return this.#session.openRepository(this.#idOf(name));
  }

  async look(object: Stored<Repository>): Promise<{ readonly object: Repository; readonly problem?: string }> {
    const id = keyText(keyOf(object));
    const { store, clock } = this.#session;
    const lastTransitionTime = timestamp(clock.now());
    const ready = (status: 'True' | 'False', reason: string, message: string) => ({
      conditions: [{ type: 'Ready', status, reason, message, lastTransitionTime }],
    });
    try {
      await this.#session.openSoon(id);
      const { index } = store.repository(id);
      const packages = new Set(store.list({ repository: id }).map(({ key }) => key.package));
      const status = {
        ...ready('True', 'Ready', 'Repository Ready'),
        packageCount: packages.size,
        ...(index.mainHead === undefined ? {} : { gitCommitHash: index.mainHead }),
      };
      return { object: { ...object, status } };
    } catch (error) {
      const problem = messageOf(error);
      return { object: { ...object, status: ready('False', 'Error', problem) }, problem };
    }
  }

  #idOf(name: string): string {
    return `${this.#namespace}/${name}`;
  }
}
