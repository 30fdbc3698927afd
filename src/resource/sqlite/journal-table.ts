import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from '../../foundation/clock.ts';
import type { EventJournal, LogEntry, LoggedChange } from '../event-log.ts';
import { deepFreeze, type KubernetesObject, type Stored } from '../object.ts';

export interface JournalTableOptions {
  readonly clock: Clock;
  /** How many events are kept at most. */
  readonly keep: number;
  readonly readOnly: boolean;
  /** Told that there is something to write. */
  readonly onNote: () => void;
}

/** An event may go after this time, in milliseconds, however few there are. */
const KEPT_FOR = 60 * 60_000;
/** How often old events are looked for: after so many new ones. */
const TRIM_EVERY = 1000;
/** More changes than this at once are the arrival of a repository rather than news: nobody needs them one by one. */
const BULK = 1000;
/** Versions are given out from blocks that are marked as used beforehand, so that none is given twice after a crash. */
const BLOCK = 10_000n;

interface Noted {
  readonly topic: string;
  readonly entry: LogEntry;
}

/** The events table: what the event log remembers beyond the life of the process. */
export class JournalTable implements EventJournal {
  readonly start: bigint;
  readonly #options: JournalTableOptions;
  readonly #floors = new Map<string, bigint>();
  readonly #insert: StatementSync;
  readonly #read: StatementSync;
  readonly #raise: StatementSync;
  readonly #set: StatementSync;
  readonly #database: DatabaseSync;
  #pending: Noted[] = [];
  #raised = new Map<string, bigint>();
  #count: number;
  #sinceTrim = 0;
  /** Versions and when they were reached, in steps, to find what is an hour old without looking at every row. */
  #marks: { readonly version: bigint; readonly at: number }[] = [];
  #reservedUpTo: bigint;
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
    this.#count = Number(database.prepare('SELECT count(*) AS n FROM events').get()?.n ?? 0);
    const reserved = database.prepare("SELECT value FROM settings WHERE name = 'reservedVersion'").get();
    this.start = reserved === undefined ? 0n : BigInt(String(reserved.value));
    this.#last = this.start;
    this.#reservedUpTo = this.start;
    if (!options.readOnly) this.#reserve();
  }

  floor(topic: string): bigint {
    return this.#floors.get(topic) ?? 0n;
  }

  note(topic: string, entry: LogEntry, keep: boolean): void {
    if (entry.version > this.#last) this.#last = entry.version;
    if (keep) this.#pending.push({ topic, entry });
    this.#options.onNote();
  }

  forget(topic: string, version: bigint): void {
    this.#raised.set(topic, version);
    this.#floors.set(topic, version);
    this.#options.onNote();
  }

  read(topic: string, after: bigint, upTo: bigint, limit: number): LogEntry[] {
    return this.#read.all(topic, after, upTo, limit).map((row) => ({
      version: BigInt(Number(row.version)),
      change: new JournaledChange(row.before, row.after),
    }));
  }

  /** Writes what was noted; inside a transaction. */
  write(): void {
    const at = this.#options.clock.now();
    for (const { topic, entry } of this.#worthKeeping()) {
      const { before, after } = entry.change;
      this.#insert.run(entry.version, topic, at, textOf(before), textOf(after));
      this.#count += 1;
      this.#sinceTrim += 1;
    }
    for (const [topic, version] of this.#raised) this.#raise.run(topic, version);
    if (this.#last + BLOCK / 2n > this.#reservedUpTo) this.#reserve();
    if (this.#sinceTrim >= TRIM_EVERY) this.#trim(at);
  }

  /** The transaction that `write` was part of is durable. */
  settle(): void {
    this.#pending = [];
    this.#raised = new Map();
  }

  /** The transaction is rolled back: what it would have shown never happened. */
  drop(): void {
    this.#pending = [];
  }

  /** Marks the versions that were not used as free again. */
  close(): void {
    if (!this.#options.readOnly) this.#set.run('reservedVersion', String(this.#last));
  }

  #reserve(): void {
    this.#reservedUpTo = this.#last + BLOCK;
    this.#set.run('reservedVersion', String(this.#reservedUpTo));
  }

  /** A bulk of changes of one kind is not kept one by one: who watched from before it lists again. */
  #worthKeeping(): readonly Noted[] {
    if (this.#pending.length <= BULK) return this.#pending;
    const counts = new Map<string, number>();
    for (const { topic } of this.#pending) counts.set(topic, (counts.get(topic) ?? 0) + 1);
    return this.#pending.filter(({ topic, entry }) => {
      if ((counts.get(topic) ?? 0) <= BULK) return true;
      this.#raised.set(topic, entry.version);
      this.#floors.set(topic, entry.version);
      return false;
    });
  }

  /** Takes old events away; costs what it takes away. */
  #trim(now: number): void {
    this.#sinceTrim = 0;
    this.#marks.push({ version: this.#last, at: now });
    const old = this.#marks.findLast(({ at }) => at < now - KEPT_FOR);
    this.#marks = this.#marks.filter(({ version }) => old === undefined || version > old.version);
    const surplus = this.#count - this.#options.keep;
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
    this.#count -= Number(changes);
  }
}

/** A change out of the table; its objects are read when somebody looks. */
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
