import type { DatabaseSync } from 'node:sqlite';

/**
 * Texts by key, all in memory, written with the next commit of the database. What is set is seen at once; after a crash the last
 * moments may be missing, so it is for what can be derived again.
 */
export class NoteTable {
  readonly #database: DatabaseSync;
  readonly #topic: string;
  readonly #touch: () => void;
  readonly #values: Map<string, string>;
  #changed = new Set<string>();

  constructor(database: DatabaseSync, topic: string, touch: () => void) {
    this.#database = database;
    this.#topic = topic;
    this.#touch = touch;
    const rows = database.prepare('SELECT key, value FROM notes WHERE topic = ?').all(topic);
    this.#values = new Map(rows.map((row) => [String(row.key), String(row.value)]));
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: string): string | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: string): void {
    if (this.#values.get(key) === value) return;
    this.#values.set(key, value);
    this.#note(key);
  }

  delete(key: string): void {
    if (this.#values.delete(key)) this.#note(key);
  }

  /** In this process the newest are the last ones. */
  entries(): IterableIterator<[string, string]> {
    return this.#values.entries();
  }

  /** Writes the changed notes; inside a transaction. */
  write(): void {
    if (this.#changed.size === 0) return;
    const put = this.#database.prepare(
      'INSERT INTO notes (topic, key, value) VALUES (?, ?, ?) ON CONFLICT (topic, key) DO UPDATE SET value = excluded.value',
    );
    const remove = this.#database.prepare('DELETE FROM notes WHERE topic = ? AND key = ?');
    for (const key of this.#changed) {
      const value = this.#values.get(key);
      if (value === undefined) remove.run(this.#topic, key);
      else put.run(this.#topic, key, value);
    }
  }

  /** The transaction that `write` was part of is durable. */
  settle(): void {
    this.#changed = new Set();
  }

  #note(key: string): void {
    this.#changed.add(key);
    this.#touch();
  }
}
