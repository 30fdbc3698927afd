import type { LockHolder } from '../../foundation/files/process-lock.ts';
import { counted } from '../../foundation/text/counted.ts';
import type { IndexChange } from '../../package/index/state/index-delta.ts';
import { isPlaceholder } from '../../package/model/revision/package-revision.ts';
import type { Session } from '../session/session.ts';
import type { LogEntry } from './log/log-entry.ts';

/** Reports the recovery after a process that ended without stopping, as two lines of the log. */
export class Recovery {
  readonly #session: Session;
  readonly #before: LockHolder;
  #known = 0;
  #found = 0;
  #moved = 0;

  constructor(session: Session, before: LockHolder) {
    this.#session = session;
    this.#before = before;
  }

  begun(): LogEntry {
    const { pid, since } = this.#before;
    const message = `process ${pid}, at work since ${since}, ended without stopping; repositories are read again, and what it left undone is finished`;
    return this.#entry('Recovery', message, { pid, since });
  }

  count(changes: readonly IndexChange[]): void {
    for (const { before, after } of changes) {
      const row = after ?? before;
      if (row === undefined || isPlaceholder(row)) continue;
      if (before !== undefined || after === undefined) this.#moved += 1;
      else if (this.#session.wasKnown(after)) this.#known += 1;
      else this.#found += 1;
    }
  }

  finished(): LogEntry {
    const counts = { known: this.#known, found: this.#found, moved: this.#moved };
    const repositories = this.#session.store.repositories().length;
    const message = `recovery finished: ${counted(repositories, 'repository', 'repositories')} read; package revisions: ${counts.known} as before, ${counts.found} new or changed, ${counted(counts.moved, 'step')} taken since`;
    return this.#entry('Recovered', message, { repositories, ...counts });
  }

  #entry(event: string, message: string, fields: Record<string, unknown>): LogEntry {
    const { clock, folder } = this.#session;
    return { at: clock.now(), level: 'info', event, subject: folder.shown, message, fields };
  }
}
