import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { findCondition } from '../../resource/object/condition.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { isExpected } from '../output/report-error.ts';
import { compareRepository } from './compare-repository.ts';
import type { Difference } from './compare-revisions.ts';
import { copyMetadata } from './copy-metadata.ts';
import type { MigrationReport, Note, RepositoryReport } from './migration-report.ts';
import { expectedNotes, notesInCluster, observedNotes } from './notes.ts';
import { planRepository, type RepositoryPlan, shownAddress, withoutPasswords } from './plan-repository.ts';
import { otherNotes, packageRevNames } from './porch-objects.ts';
import { planSecret, registerRepository } from './register-repository.ts';

/** Names that a message lists. */
const MAX_NAMES = 10;

export interface MigrationOptions {
  /** All namespaces if absent. */
  readonly namespace?: string | undefined;
  /** Names of repositories; all if absent. */
  readonly only?: readonly string[] | undefined;
  readonly includeSecrets?: boolean | undefined;
  /** Sluice will run in the cluster of Porch. */
  readonly sameCluster?: boolean | undefined;
  readonly contents: boolean;
  readonly waitMs: number;
  readonly applied: boolean;
}

type Result = Omit<RepositoryReport, 'namespace' | 'name' | 'address'>;

/** Goes through the repositories of a Porch one after the other. What is done for one stays if a later one fails. */
export class Migration {
  readonly #porch: Access;
  readonly #sluice: Access | undefined;
  readonly #options: MigrationOptions;
  readonly #differences: Difference[] = [];
  readonly #notes: Note[] = [];
  /** Repositories of Sluice by namespace, with those that it gets. */
  readonly #existing = new Map<string, Stored<Repository>[]>();
  #packageRevs: ReadonlySet<string> | undefined;

  /** Without `sluice` it is a dry run for a data folder that does not exist yet. */
  constructor(porch: Access, sluice: Access | undefined, options: MigrationOptions) {
    this.#porch = porch;
    this.#sluice = sluice;
    this.#options = options;
  }

  async run(): Promise<MigrationReport> {
    const { namespace, only, applied } = this.#options;
    const { client } = this.#porch;
    const { items } = await client.list(repositoryKind, namespace === undefined ? {} : { namespace });
    expectWanted(items, this.#options);
    const wanted = items
      .filter(({ metadata }) => only === undefined || only.includes(metadata.name))
      .toSorted((a, b) => (keyText(keyOf(a)) < keyText(keyOf(b)) ? -1 : 1));
    this.#packageRevs = await packageRevNames(client, namespace);
    const repositories: RepositoryReport[] = [];
    for (const repository of wanted) repositories.push(await this.#migrate(repository));
    this.#notes.push(...(await otherNotes(client, namespace)));
    const notes = this.#sluice?.isOwnServer === false ? notesInCluster(this.#notes) : this.#notes;
    return {
      ...{ porch: this.#porch.where, sluice: this.#sluice?.where ?? 'a new data folder' },
      ...{ applied, repositories, differences: this.#differences, notes },
    };
  }

  async #migrate(given: Stored<Repository>): Promise<RepositoryReport> {
    const { name, namespace = DEFAULT_NAMESPACE } = given.metadata;
    const identity = { namespace, name, address: shownAddress(given) };
    try {
      return { ...identity, ...(await this.#carryOut(given, await this.#plan(given, namespace))) };
    } catch (error) {
      if (!isExpected(error)) throw error;
      const { next } = (isSluiceError(error) ? (error.details ?? {}) : {}) as { readonly next?: string };
      const message = withoutPasswords(messageOf(error), given);
      return { ...identity, action: 'blocked', message, next: next ?? 'remove the cause, and run the command again' };
    }
  }

  async #plan(given: Stored<Repository>, namespace: string): Promise<RepositoryPlan> {
    const { client } = this.#sluice ?? {};
    let existing = this.#existing.get(namespace);
    if (existing === undefined) {
      existing = client === undefined ? [] : [...(await client.list(repositoryKind, { namespace })).items];
      this.#existing.set(namespace, existing);
    }
    const plan = await planRepository(given, existing);
    if (plan.action === 'register') existing.push(given);
    return plan;
  }

  async #carryOut(given: Stored<Repository>, { object, ...planned }: RepositoryPlan): Promise<Result> {
    if (object === undefined || planned.action === 'conflict') return planned;
    const { applied, waitMs, includeSecrets } = this.#options;
    const { name, namespace = DEFAULT_NAMESPACE } = given.metadata;
    const place = { namespace, subject: name };
    const source = includeSecrets === true ? this.#porch : undefined;
    this.#noteNotReady(given, place);
    const porch = await this.#revisionsOf(this.#porch, namespace, name);
    const secret = await planSecret(object, this.#sluice, source);
    const found = { porch: porch.length, ...(secret === undefined ? {} : { secret }) };
    if (planned.action === 'register') {
      if (secret?.state === 'missing') return { ...found, ...withoutSecret(secret.name, namespace) };
      if (!applied || this.#sluice === undefined) {
        this.#notes.push(...expectedNotes(place, porch));
        return { ...planned, ...found };
      }
      await registerRepository(object, this.#sluice, { source, waitMs });
    }
    if (this.#sluice === undefined) return { ...planned, ...found };
    const compared = await this.#compare(porch, this.#sluice, place);
    if (planned.action !== 'register') return { ...planned, ...found, ...compared };
    const copied = secret?.state === 'copy' ? { secret: { ...secret, state: 'copied' as const } } : {};
    return { action: 'registered', ...found, ...copied, ...compared };
  }

  /** Copies metadata, and compares what both show of a repository that Sluice has. */
  async #compare(
    porch: readonly Stored<PackageRevision>[],
    sluice: Access,
    place: Pick<Note, 'namespace' | 'subject'>,
  ): Promise<Pick<Result, 'sluice' | 'alike' | 'metadata'>> {
    const { applied, contents, sameCluster = false } = this.#options;
    const { namespace, subject } = place;
    const before = await this.#revisionsOf(sluice, namespace, subject);
    const { client } = sluice;
    const metadata = await copyMetadata({ porch, sluice: before, client, namespace, sameCluster, applied });
    const own = metadata.length > 0 && applied ? await this.#revisionsOf(sluice, namespace, subject) : before;
    this.#notes.push(...observedNotes(place, porch, own));
    const internal = this.#packageRevs;
    const hasDatabase =
      internal !== undefined && !porch.some((one) => internal.has(`${namespace}/${one.metadata.name}`));
    const found = await compareRepository(
      { access: this.#porch, revisions: porch },
      { access: sluice, revisions: own },
      { namespace, contents, hasDatabase },
    );
    for (const difference of found) this.#differences.push({ namespace, repository: subject, ...difference });
    const different = new Set(found.map(({ name }) => name));
    const alike = porch.filter(({ metadata: { name } }) => !different.has(name)).length;
    return { sluice: own.length, alike, ...(metadata.length === 0 ? {} : { metadata }) };
  }

  /** Porch does not show the package revisions of a repository that it cannot read. */
  #noteNotReady(given: Stored<Repository>, place: Pick<Note, 'namespace' | 'subject'>): void {
    const ready = findCondition(given.status?.conditions, 'Ready');
    if (ready?.status === 'True') return;
    const why = withoutPasswords(ready?.message ?? 'it has not read the repository yet', given);
    const message = `not ready at Porch, which may not show all package revisions (${why})`;
    this.#notes.push({ ...place, reason: 'NotReady', message, names: [], next: 'run the command again once it is' });
  }

  async #revisionsOf({ client }: Access, namespace: string, repository: string): Promise<Stored<PackageRevision>[]> {
    const fieldSelector = `spec.repository=${repository}`;
    return [...(await client.list(packageRevisionKind, { namespace, fieldSelector })).items];
  }
}

function withoutSecret(name: string, namespace: string): Pick<Result, 'action' | 'message' | 'next'> {
  return {
    action: 'blocked',
    message: `Sluice does not have the Secret ${name} with its credentials`,
    next: `create it in the namespace ${namespace}, or copy it with --include-secrets`,
  };
}

/** A wrong namespace or name must not look like a migration that is done. */
function expectWanted(items: readonly Stored<Repository>[], { namespace, only = [] }: MigrationOptions): void {
  const where = namespace === undefined ? 'in any namespace' : `in namespace ${namespace}`;
  if (items.length === 0) {
    const next = namespace === undefined ? 'check --kubeconfig and --context' : 'check -n, or leave it out';
    throw new SluiceError('NotFound', `Porch has no repositories ${where}: ${next}`);
  }
  const names = new Set(items.map(({ metadata }) => metadata.name));
  const unknown = only.filter((name) => !names.has(name));
  if (unknown.length === 0) return;
  const known = [...names].sort().slice(0, MAX_NAMES).join(', ');
  throw new SluiceError(
    'InvalidInput',
    `--only: Porch has no repository ${unknown.join(', ')} ${where}; it has ${known}`,
  );
}
