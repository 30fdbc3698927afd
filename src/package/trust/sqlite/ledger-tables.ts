import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { z } from 'zod';
import { headsOfAll, type MainHeads, UNNAMED_BRANCH, withHead } from '../ledger/main-heads.ts';
import type { KnownRepository, Mark, StatementScope, TrustedKey } from '../ledger/trust-ledger.ts';

const rowOfKey = z.object({
  fingerprint: z.string(),
  publicKey: z.string(),
  comment: z.string(),
  origin: z.enum(['own', 'added']),
  addedAt: z.string(),
  revokedAt: z.string().nullable(),
  revokedOrder: z.number().nullable(),
  revokedHeads: z.string().nullable(),
});
const headsSchema = z.record(z.string(), z.string());
const rowOfRepository = z.object({ id: z.string(), address: z.string(), mainHead: z.string().nullable() });

/** The statements on the tables of a ledger. Those that write have to run inside a transaction. */
export class LedgerTables {
  readonly #database: DatabaseSync;
  readonly #getMark: StatementSync;
  readonly #putMark: StatementSync;
  readonly #getCounter: StatementSync;
  readonly #raiseCounter: StatementSync;
  readonly #dataVersion: StatementSync;
  readonly #repositoryAt: StatementSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#getMark = database.prepare(
      'SELECT sequence, digest, position, proven FROM marks WHERE repository = ? AND package = ? AND workspace = ?',
    );
    this.#putMark = database.prepare(
      'INSERT INTO marks (repository, package, workspace, sequence, digest, position, proven) VALUES (?, ?, ?, ?, ?, ?, ?) ' +
        'ON CONFLICT DO UPDATE SET sequence = excluded.sequence, digest = excluded.digest, position = excluded.position, proven = excluded.proven',
    );
    this.#getCounter = database.prepare('SELECT value FROM counters WHERE name = ?');
    this.#dataVersion = database.prepare('PRAGMA data_version');
    this.#repositoryAt = database.prepare(
      'SELECT * FROM repositories WHERE address = ? ORDER BY position DESC LIMIT 1',
    );
    this.#raiseCounter = database.prepare('UPDATE counters SET value = max(value, ?) WHERE name = ?');
  }

  counter(name: 'keysVersion' | 'order'): number {
    return Number(this.#getCounter.get(name)?.value);
  }

  raiseCounter(name: 'keysVersion' | 'order', value: number): void {
    this.#raiseCounter.run(value, name);
  }

  /** Another number after another connection has written. */
  foreignVersion(): number {
    return Number(this.#dataVersion.get()?.data_version);
  }

  mark({ repository, package: path, workspace }: StatementScope): Mark | undefined {
    const row = this.#getMark.get(repository, path, workspace);
    if (row === undefined) return undefined;
    const { sequence, digest, position, proven } = row;
    return { sequence: Number(sequence), digest: String(digest), order: Number(position), proven: proven === 1 };
  }

  putMark({ repository, package: path, workspace }: StatementScope, { sequence, digest, order, proven }: Mark): void {
    this.#putMark.run(repository, path, workspace, sequence, digest, order, proven ? 1 : 0);
  }

  keys(): TrustedKey[] {
    const rows = this.#database.prepare('SELECT * FROM keys ORDER BY position').all();
    return rows.map((row) => {
      const { revokedAt: at, revokedOrder: order, revokedHeads, ...key } = rowOfKey.parse(row);
      if (at === null || order === null || revokedHeads === null) return key;
      return { ...key, revocation: { at, order, heads: headsSchema.parse(JSON.parse(revokedHeads)) } };
    });
  }

  /** False if the key is known already. */
  addKey({ fingerprint, publicKey, comment, origin, addedAt }: Omit<TrustedKey, 'revocation'>): boolean {
    const insert = this.#database.prepare(
      'INSERT INTO keys (fingerprint, publicKey, comment, origin, addedAt, position) ' +
        'VALUES (?, ?, ?, ?, ?, (SELECT coalesce(max(position), 0) + 1 FROM keys)) ON CONFLICT DO NOTHING',
    );
    return insert.run(fingerprint, publicKey, comment, origin, addedAt).changes > 0;
  }

  /** False if the key is revoked already, or unknown. */
  /** For marks of all kinds. */
  digestsUpTo(order: number): string[] {
    const rows = this.#database.prepare('SELECT digest FROM marks WHERE position <= ?').all(order);
    return rows.map(({ digest }) => String(digest));
  }

  revokeKey(fingerprint: string, at: string): boolean {
    const update = this.#database.prepare(
      'UPDATE keys SET revokedAt = ?, revokedOrder = ?, revokedHeads = ? WHERE fingerprint = ? AND revokedAt IS NULL',
    );
    const text = JSON.stringify(headsOfAll(this.repositories()));
    return update.run(at, this.counter('order'), text, fingerprint).changes > 0;
  }

  repository(id: string): KnownRepository | undefined {
    return repositoryOf(this.#database.prepare('SELECT * FROM repositories WHERE id = ?').get(id));
  }

  repositoryAt(address: string): KnownRepository | undefined {
    return repositoryOf(this.#repositoryAt.get(address));
  }

  repositories(): KnownRepository[] {
    const rows = this.#database.prepare('SELECT * FROM repositories ORDER BY position').all();
    return rows.map(repositoryOf).filter((repository) => repository !== undefined);
  }

  /** Changes nothing for an unknown repository, and does not count as having seen one at its address. */
  noteMain(id: string, branch: string, head: string): void {
    const known = this.repository(id);
    if (known === undefined) return;
    const text = textOfHeads(withHead(known.mainHeads, branch, head));
    this.#database.prepare('UPDATE repositories SET mainHead = ? WHERE id = ?').run(text, id);
  }

  putRepository({ id, address, mainHeads }: KnownRepository): void {
    this.#database
      .prepare(
        'INSERT INTO repositories (id, address, mainHead, position) ' +
          'VALUES (?, ?, ?, (SELECT coalesce(max(position), 0) + 1 FROM repositories)) ' +
          'ON CONFLICT DO UPDATE SET address = excluded.address, mainHead = excluded.mainHead, position = excluded.position',
      )
      .run(id, address, textOfHeads(mainHeads));
  }
}

function repositoryOf(row: unknown): KnownRepository | undefined {
  if (row === undefined) return undefined;
  const { id, address, mainHead } = rowOfRepository.parse(row);
  return { id, address, mainHeads: headsOf(mainHead) };
}

/** The column contains the heads by branch as JSON. Earlier versions stored one commit, for any branch. */
function headsOf(text: string | null): MainHeads {
  if (text === null) return {};
  return text.startsWith('{') ? headsSchema.parse(JSON.parse(text)) : { [UNNAMED_BRANCH]: text };
}

function textOfHeads(heads: MainHeads): string | null {
  return Object.keys(heads).length === 0 ? null : JSON.stringify(heads);
}
