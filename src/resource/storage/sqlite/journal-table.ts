import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import { deepFreeze, type KubernetesObject, type Stored } from '../../object/object.ts';
import type { EventJournal } from '../../watch/event-log.ts';
import type { LogEntry, LoggedChange } from '../../watch/log-entry.ts';

export interface JournalTableOptions {
  readonly clock: Clock;
  /** Maximum number of events. */
  readonly keep: number;
  /** Approximate maximum size of the events in bytes. */
  readonly keepBytes: number;
  readonly readOnly: boolean;
  /** For messages. */
  readonly path: string;
  /** Called when events wait to be written. */
  readonly onNote: () => void;
  /** Called with why versions could not be marked as used; the next commit tries again. */
  readonly onError: (error: unknown) => void;
}

/** An event may be removed after this time, in milliseconds, independent of their number. */
const RETENTION_MS = 60 * 60_000;
/** Number of new events after which old ones are removed. */
const TRIM_INTERVAL_EVENTS = 1000;
/** More changes than this at once are the arrival of a repository: no watcher needs them one by one. */
const MIN_BULK_CHANGES = 1000;
/** Versions are assigned from blocks that are marked as used beforehand, so that none is assigned twice after a crash. */
const VERSION_BLOCK = 10_000n;

/** The bytes of some events, in SQL. */
const BYTES = 'coalesce(sum(coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)), 0)';
/** Old events are removed after this part of the bytes that may be kept too. */
const TRIM_PART = 1 / 32;

interface Noted {
  readonly topic: string;
  readonly entry: LogEntry;
  /** The object after the change as text, if it was already encoded. */
  readonly text?: string | undefined;
}

/** Some events in a row: the newest version of them, when it was reached, and how many bytes they have. */
interface Mark {
  readonly version: bigint;
  readonly at: number;
  readonly bytes: number;
}

/** The events table: the events that outlive the process. */
export class JournalTable implements EventJournal {
  readonly start: bigint;
  readonly #options: JournalTableOptions;
  readonly #floors = new Map<string, bigint>();
  readonly #insert: StatementSync;
  readonly #read: StatementSync;
  readonly #raise: StatementSync;
  readonly #set: StatementSync;
  readonly #database: DatabaseSync;
  readonly #reserved: StatementSync;
  /** Watchers have these, also if the next commit fails. */
  #published: Noted[] = [];
  /** Changes of the transaction under way, which are published once it is durable. */
  #staged: Noted[] = [];
  #raised = new Map<string, bigint>();
  #count: number;
  /** By how many the transaction under way changes it. */
  #counting = 0;
  #sinceTrim = 0;
  #bytesSinceTrim = 0;
  /** Oldest first, to find rows to remove without a scan of the table. */
  #marks: Mark[] = [];
  /** As in the file. */
  #reservedUpTo: bigint;
  /** As in the file once the transaction under way is durable. */
  #reserving: bigint | undefined;
  #last: bigint;

  constructor(database: DatabaseSync, options: JournalTableOptions) {
    this.#options = options;
    this.#database = database;
    this.#insert = database.prepare('INSERT INTO events (version, topic, at, before, after) VALUES (?, ?, ?, ?, ?)');
    this.#read = database.prepare(
      'SELECT version, before, after FROM events WHERE topic = ? AND version > ? AND version <= ? ORDER BY version LIMIT ?',
    );
    this.#raise = database.prepare(
      'INSERT INTO floors (topic, version) VALUES (?, ?) ON CONFLICT (topic) DO UPDATE SET version = max(version, excluded.version)',
    );
    this.#set = database.prepare(
      'INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    );
    for (const row of database.prepare('SELECT topic, version FROM floors').all())
      this.#floors.set(String(row.topic), BigInt(Number(row.version)));
    const found = database.prepare(`SELECT count(*) AS events, ${BYTES} AS bytes FROM events`).get();
    this.#count = Number(found?.events ?? 0);
    this.#reserved = database.prepare("SELECT value FROM settings WHERE name = 'reservedVersion'");
    this.start = this.#reservedInFile();
    this.#last = this.start;
    this.#reservedUpTo = this.start;
    this.#marks.push({ version: this.start, at: options.clock.now(), bytes: Number(found?.bytes ?? 0) });
    if (!options.readOnly) this.#reserveNow();
  }

  floor(topic: string): bigint {
    return this.#floors.get(topic) ?? 0n;
  }

  note(topic: string, entry: LogEntry, keep: boolean): void {
    this.#giveOut(entry.version);
    if (keep) this.#published.push({ topic, entry });
    this.#options.onNote();
  }

  /** Keeps a change of the transaction under way. */
  stage(topic: string, entry: LogEntry, text: string | undefined): void {
    this.#last = entry.version;
    this.#staged.push({ topic, entry, text });
  }

  forget(topic: string, version: bigint): void {
    this.#giveOut(version);
    this.#raiseFloor(topic, version);
    this.#options.onNote();
  }

  read(topic: string, after: bigint, upTo: bigint, limit: number): LogEntry[] {
    const written = this.#read.all(topic, after, upTo, limit).map((row) => ({
      version: BigInt(Number(row.version)),
      change: new JournaledChange(row.before, row.after),
    }));
    // Events that wait for the next commit come after all written ones.
    const waiting = this.#published.filter(
      ({ topic: other, entry: { version } }) => other === topic && version > after && version <= upTo,
    );
    return [...written, ...waiting.map(({ entry }) => entry)].slice(0, limit);
  }

  /** Writes the pending events; inside a transaction. Throws Unavailable if another process has written meanwhile. */
  write(): void {
    if (this.#reservedInFile() !== this.#reservedUpTo)
      throw new SluiceError(
        'Unavailable',
        `another process writes ${this.#options.path}, and nothing was changed here; stop one of them and start the other one again`,
      );
    const at = this.#options.clock.now();
    for (const { topic, entry, text } of this.#worthKeeping([...this.#published, ...this.#staged])) {
      const before = textOf(entry.change.before);
      const after = text ?? textOf(entry.change.after);
      this.#insert.run(entry.version, topic, at, before, after);
      this.#counting += 1;
      this.#sinceTrim += 1;
      this.#bytesSinceTrim += (before?.length ?? 0) + (after?.length ?? 0);
    }
    for (const [topic, version] of this.#raised) this.#raise.run(topic, version);
    if (this.#last + VERSION_BLOCK / 2n > this.#reservedUpTo) this.#reserving = this.#reserve();
    if (this.#sinceTrim >= TRIM_INTERVAL_EVENTS || this.#bytesSinceTrim >= this.#options.keepBytes * TRIM_PART)
      this.#trim(at);
  }

  /** The transaction that `write` was part of is durable. */
  settle(): void {
    this.#published = [];
    this.#staged = [];
    this.#raised = new Map();
    this.#count += this.#counting;
    this.#counting = 0;
    this.#reservedUpTo = this.#reserving ?? this.#reservedUpTo;
    this.#reserving = undefined;
  }

  /** The transaction is rolled back, and its changes are not published. Published events wait for the next transaction. */
  drop(): void {
    this.#staged = [];
    this.#reserving = undefined;
    this.#counting = 0;
    // Bounds the memory while nothing can be written.
    this.#published = this.#worthKeeping(this.#published);
  }

  /** Marks the versions that were not used as free again. */
  close(): void {
    if (this.#options.readOnly || this.#reservedInFile() !== this.#reservedUpTo) return;
    this.#set.run('reservedVersion', String(this.#last));
  }

  #reservedInFile(): bigint {
    return BigInt(String(this.#reserved.get()?.value ?? 0));
  }

  /** A version that a client may see before the next commit, which marks versions as used in good time if it is not far. */
  #giveOut(version: bigint): void {
    this.#last = version;
    if (version <= this.#reservedUpTo) return;
    try {
      this.#reserveNow();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #reserveNow(): void {
    this.#reservedUpTo = this.#reserve();
  }

  #reserve(): bigint {
    const upTo = this.#last + VERSION_BLOCK;
    this.#set.run('reservedVersion', String(upTo));
    return upTo;
  }

  #raiseFloor(topic: string, version: bigint): void {
    this.#raised.set(topic, version);
    this.#floors.set(topic, version);
  }

  /** A bulk of changes of one kind is not kept one by one: a watch from before it lists again. */
  #worthKeeping(noted: Noted[]): Noted[] {
    if (noted.length <= MIN_BULK_CHANGES) return noted;
    const counts = new Map<string, number>();
    for (const { topic } of noted) counts.set(topic, (counts.get(topic) ?? 0) + 1);
    return noted.filter(({ topic, entry }) => {
      if ((counts.get(topic) ?? 0) <= MIN_BULK_CHANGES) return true;
      this.#raiseFloor(topic, entry.version);
      return false;
    });
  }

  /** Removes old events; the cost is that of what it removes. */
  #trim(now: number): void {
    this.#marks.push({ version: this.#last, at: now, bytes: this.#bytesSinceTrim });
    this.#sinceTrim = 0;
    this.#bytesSinceTrim = 0;
    let total = 0;
    const old = this.#marks.findLast(({ at, bytes }) => {
      total += bytes;
      return at < now - RETENTION_MS || total > this.#options.keepBytes;
    });
    this.#marks = this.#marks.filter(({ version }) => old === undefined || version > old.version);
    const surplus = this.#count + this.#counting - this.#options.keep;
    const overfull =
      surplus <= 0
        ? undefined
        : this.#database.prepare('SELECT version FROM events ORDER BY version LIMIT 1 OFFSET ?').get(surplus - 1);
    const upTo = Math.max(Number(overfull?.version ?? 0), Number(old?.version ?? 0));
    if (upTo === 0) return;
    const rows = this.#database
      .prepare('SELECT topic, max(version) AS version FROM events WHERE version <= ? GROUP BY topic')
      .all(upTo);
    for (const { topic, version } of rows) {
      this.#floors.set(String(topic), BigInt(Number(version)));
      this.#raise.run(String(topic), Number(version));
    }
    const { changes } = this.#database.prepare('DELETE FROM events WHERE version <= ?').run(upTo);
    this.#counting -= Number(changes);
  }
}

/** A change out of the table; its objects are parsed on access. */
class JournaledChange implements LoggedChange {
  readonly #texts: readonly [unknown, unknown];

  constructor(before: unknown, after: unknown) {
    this.#texts = [before, after];
  }

  get before(): Stored | undefined {
    return objectOf(this.#texts[0]);
  }

  get after(): Stored | undefined {
    return objectOf(this.#texts[1]);
  }
}

function textOf(object: KubernetesObject | undefined): string | null {
  return object === undefined ? null : JSON.stringify(object);
}

function objectOf(text: unknown): Stored | undefined {
  return typeof text === 'string' ? (deepFreeze(JSON.parse(text)) as Stored) : undefined;
}
