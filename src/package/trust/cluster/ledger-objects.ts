import { createHash } from 'node:crypto';
import { z } from 'zod';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { configMapKind } from '../../../resource/kinds/core/config-map.ts';
import type { ObjectOf } from '../../../resource/schema/kind.ts';
import { scopeText } from '../ledger/marks.ts';
import type { ShownStates } from '../ledger/shown-states.ts';
import type { KnownRepository, Mark, StatementScope, TrustedKey } from '../ledger/trust-ledger.ts';

/*
 * The objects of a ledger in a cluster. Each is a ConfigMap of a namespace that only Sluice may write:
 *
 * | name | data |
 * |---|---|
 * | `<ledger>-marks-<000 to 3ff>` | the marks of the scopes whose hash begins so, one key for each |
 * | `<ledger>-key-<hash of the fingerprint>` | one trusted key, with its revocation |
 * | `<ledger>-repository-<hash of the id>` | one known repository, with its main heads |
 * | `<ledger>-shown-<hash of the id>` | which states of one repository clients have been shown |
 *
 * 1,024 objects of marks hold 4 million marks of 200 bytes, and one write stores 20 KB again where there are 100,000.
 */

export type LedgerObject = ObjectOf<typeof configMapKind>;
type Data = Readonly<Record<string, string>>;

/** Names the ledger to which an object belongs. */
export const LEDGER_LABEL = 'sluice.dev/trust-ledger';

const CONTENT = 'content';
const MARK_OBJECTS = 1024;

/** A known repository as it is stored. */
export interface StoredRepository extends KnownRepository {
  /** Rises with each `putRepository`: at an address, the repository with the highest one counts. */
  readonly position: number;
  /** Of the lease of the process that wrote it: a process whose lease is older does not replace it. */
  readonly epoch: number;
}

export interface StoredKey extends TrustedKey {
  /** Keys are in this order. */
  readonly position: number;
}

/** The states of a repository that clients have been shown. */
export interface StoredStates {
  readonly id: string;
  readonly states: ShownStates;
}

export interface StoredMark {
  readonly scope: StatementScope;
  readonly mark: Mark;
}

/** What one object contains. */
export type LedgerContent =
  | { readonly part: 'marks'; readonly marks: readonly StoredMark[] }
  | { readonly part: 'key'; readonly key: StoredKey }
  | { readonly part: 'repository'; readonly repository: StoredRepository }
  | { readonly part: 'shown'; readonly shown: StoredStates };

const headsSchema = z.record(z.string(), z.string());
const markSchema = z.tuple([z.string(), z.string(), z.string(), z.int(), z.string(), z.int(), z.boolean()]);
const keySchema = z.object({
  fingerprint: z.string(),
  publicKey: z.string(),
  comment: z.string(),
  origin: z.enum(['own', 'added']),
  addedAt: z.string(),
  position: z.int(),
  revocation: z.object({ at: z.string(), order: z.int(), heads: headsSchema }).optional(),
});
const repositorySchema = z.object({
  id: z.string(),
  address: z.string(),
  mainHeads: headsSchema,
  position: z.int(),
  epoch: z.int(),
});

const statesSchema = z.object({
  id: z.string(),
  states: z.record(z.string(), z.object({ number: z.int(), refs: z.string() })),
});

/** Ten bits of the hash choose the object. */
export function marksName(ledger: string, scope: StatementScope): string {
  const shard = Number.parseInt(hashOf(scopeText(scope)).slice(0, 3), 16) % MARK_OBJECTS;
  return `${ledger}-marks-${shard.toString(16).padStart(3, '0')}`;
}

export function keyName(ledger: string, fingerprint: string): string {
  return `${ledger}-key-${hashOf(fingerprint)}`;
}

export function repositoryName(ledger: string, id: string): string {
  return `${ledger}-repository-${hashOf(id)}`;
}

export function shownName(ledger: string, id: string): string {
  return `${ledger}-shown-${hashOf(id)}`;
}

/** The entry of a mark in the data of its object. */
export function markEntry({ scope, mark }: StoredMark): Data {
  const { repository, package: path, workspace } = scope;
  const { sequence, digest, order, proven } = mark;
  const text = JSON.stringify([repository, path, workspace, sequence, digest, order, proven]);
  return { [hashOf(scopeText(scope))]: text };
}

/** The data of an object with one key, one repository, or its states. */
export function contentData(content: StoredKey | StoredRepository | StoredStates): Data {
  return { [CONTENT]: JSON.stringify(content) };
}

/** Reads an object of a ledger; Corrupt if it is none. */
export function readLedgerObject(ledger: string, { metadata, data = {} }: LedgerObject): LedgerContent {
  const part = metadata.name.slice(ledger.length + 1).split('-')[0];
  try {
    if (part === 'marks') return { part, marks: Object.values(data).map(readMark) };
    const content: unknown = JSON.parse(data[CONTENT] ?? '');
    if (part === 'key') return { part, key: keySchema.parse(content) as StoredKey };
    if (part === 'shown') return { part, shown: statesSchema.parse(content) };
    if (part === 'repository') return { part, repository: repositorySchema.parse(content) };
    throw new Error('its name is of no part of a ledger');
  } catch (error) {
    throw new SluiceError(
      'Corrupt',
      `cannot read the trust ledger: ConfigMap ${metadata.namespace}/${metadata.name} is damaged: ${messageOf(error)}; restore it from a backup`,
      { cause: error },
    );
  }
}

function readMark(text: string): StoredMark {
  const [repository, path, workspace, sequence, digest, order, proven] = markSchema.parse(JSON.parse(text));
  return { scope: { repository, package: path, workspace }, mark: { sequence, digest, order, proven } };
}

/** Part of the name of an object, and of a key in it. */
function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 40);
}
