import { LruCache } from '../../foundation/lru-cache.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { type Distrust, revoked } from './distrust.ts';
import { trusts } from './keys/trusted-keys.ts';
import { announce, announcedIn, announcedScope } from './ledger/announcements.ts';
import { headAmong, headOf } from './ledger/main-heads.ts';
import { publicationScope } from './ledger/publication-mark.ts';
import type { ContainedStates, ShownStates } from './ledger/shown-states.ts';
import type { Mark, NewMark, RaisedScopes, Revocation, StatementScope, TrustedKey } from './ledger/trust-ledger.ts';
import { PushReports } from './push-reports.ts';
import type { RepositoryTrustOptions } from './repository-trust-options.ts';
import {
  payloadOf,
  readablePayload,
  type SignedPayload,
  type SignedStatement,
  type StatementHead,
  statementDigest,
} from './statement/statement.ts';

/** The key that made a signature; null if the signature is invalid, undefined if it was not checked yet. */
export type Signer = string | null | undefined;

/** An evaluated statement: its position in the chain, and its signer. */
export interface StatementFact {
  readonly head: StatementHead;
  readonly digest: string;
  readonly signer: Signer;
}

/** A statement that this process signed. */
export interface OwnStatementFact extends StatementFact {
  readonly signer: string;
}

/** Scope of the mark whose sequence is the time of the first sync; no statement has it. */
const FIRST_LOOK = { package: '', workspace: 'first/look' } as const;
/** Own statements that are remembered: more than one transaction has. */
const MAX_OWN_DIGESTS = 4096;

/** What wrote a statement: this process, another one on the ledger (with the key that they share), or none of them. */
type StatementWriter = 'this-process' | 'this-installation' | 'other';

/** The trust of one repository: signs statements, and evaluates those in Git. Evaluation reads no Git objects. */
export class RepositoryTrust {
  /** Reports of the Git host on who pushed. */
  readonly reports: PushReports;
  readonly #options: RepositoryTrustOptions;
  readonly #ownDigests = new LruCache<string, true>({ maxEntries: MAX_OWN_DIGESTS });
  #repository: string;
  #writeId: (() => Promise<string>) | undefined;
  #keys: { readonly version: number; readonly keys: ReadonlyMap<string, TrustedKey> } | undefined;

  constructor(options: RepositoryTrustOptions) {
    this.#repository = options.repository;
    this.#writeId = options.writeId;
    this.#options = options;
    this.reports = new PushReports(options.pushes, () => this.repository);
  }

  /** The id of the repository. */
  get repository(): string {
    return this.#repository;
  }

  /** The id under which the ledger knows the repository, which another process may have written; this one has a substitute if it cannot. */
  get knownId(): string {
    const { address, ledger } = this.#options;
    const known = address === undefined ? undefined : ledger.repositoryAt(address);
    return known?.id ?? this.#repository;
  }

  /** See `RepositoryTrustOptions.readId`; the ledger has it before `followId`. */
  readonly readId = async (): Promise<void> => this.#options.readId?.();

  /** Takes `knownId`. Statements have to be evaluated again if it is another id than before. */
  followId(): void {
    const id = this.knownId;
    if (id === this.#repository) return;
    this.#repository = id;
    this.#writeId = undefined;
  }

  /** As `followId`, before anything is signed. Throws why the repository has no id and cannot get one. */
  async expectId(): Promise<void> {
    this.followId();
    if (this.#writeId === undefined) return;
    this.#repository = await this.#writeId();
    this.#writeId = undefined;
  }

  /**
   * Must be called before a decision: a statement that this server signs must count here. Throws Refused with the next step if the
   * repository lists keys without that of this server.
   */
  expectOwnKey(): void {
    this.readVersion();
    const { fingerprint } = this.#options.signer();
    if (trusts(this.#trustedKeys(), fingerprint)) return;
    throw new SluiceError(
      'Refused',
      `the signing key of this server, ${fingerprint}, is not one that the repository trusts, so that its decisions would not count; add its public key ("sluice key show") to the annotation sluice.dev/trusted-keys of the Repository, or use a key that is listed there with --signing-key`,
    );
  }

  /** Returns why this server cannot sign statements now; undefined if it can. */
  signingProblem(): string | undefined {
    try {
      this.#options.signer();
      return undefined;
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
      return error.message;
    }
  }

  /** Returns problems of the keys of this repository that an operator should know. */
  problems(): readonly string[] {
    return this.#options.problems?.() ?? [];
  }

  /** The last commit of the main branch that was accepted, where the ledger knows one. */
  get mainHead(): string | undefined {
    const known = this.#options.ledger.repository(this.repository);
    return known && headOf(known.mainHeads, this.#options.branch);
  }

  /** Notes that the main branch was accepted at a commit. */
  noteMain(mainHead: string): void {
    this.#options.ledger.noteMain(this.repository, this.#options.branch, mainHead);
  }

  /** Heads of the main branch up to which publications of revoked keys keep their validity. */
  revokedHeads(): string[] {
    const heads = [...this.#trustedKeys().values()].flatMap(({ revocation }) => this.#headAt(revocation) ?? []);
    return [...new Set(heads)];
  }

  /** Changes when statements may have to be evaluated again. */
  get version(): number {
    return this.#options.ledger.keysVersion;
  }

  /** The version as it is now, whichever process changed it; to be called before a decision that relies on keys. */
  readVersion(): number {
    return this.#options.ledger.readKeysVersion();
  }

  async sign(statement: StatementHead): Promise<{ signed: SignedPayload; fact: OwnStatementFact }> {
    const payload = readablePayload(statement);
    // The own key may have been rotated or revoked by another process.
    this.readVersion();
    const signer = this.#options.signer();
    const signature = await signer.sign(payload);
    const digest = statementDigest(payload);
    this.#ownDigests.set(digest, true);
    if (statement.kind === 'record') this.#announce(statement, digest);
    return { signed: { payload, signature }, fact: { head: statement, digest, signer: signer.fingerprint } };
  }

  /** Returns what wrote a statement. An own one is known for as long as the listeners need that are notified of its write. */
  writerOf({ digest, signer }: Pick<StatementFact, 'digest' | 'signer'>): StatementWriter {
    if (this.#ownDigests.has(digest)) return 'this-process';
    return this.#trustedKeys().get(signer ?? '')?.origin === 'own' ? 'this-installation' : 'other';
  }

  #announce({ package: path, workspace }: StatementHead, digest: string): void {
    const scope = announcedScope({ repository: this.repository, package: path, workspace });
    this.raise([{ scope, ...announce(this.mark(scope), digest) }], false);
  }

  /**
   * True for a statement that this server signed and that is not in its ledger: the ledger is older than the statement, as after
   * restoring a copy of its file. Then its last statements may be outdated.
   */
  isBeyondLedger(fact: StatementFact, isOwn = false): boolean {
    if (isOwn || this.#trustedKeys().get(fact.signer ?? '')?.origin !== 'own') return false;
    return fact.head.sequence > (this.mark(fact.head)?.sequence ?? 0) && this.#announcementOf(fact) === undefined;
  }

  /** The note that a process on this ledger has signed the statement, which may be written without a mark yet. */
  #announcementOf({ head, digest }: StatementFact): Mark | undefined {
    const announced = this.mark(announcedScope({ package: head.package, workspace: head.workspace }));
    return announcedIn(announced).includes(digest) ? announced : undefined;
  }

  /** Checks a signature; null if it is not valid. */
  async signerOf({ statement, signature }: SignedStatement): Promise<string | null> {
    return (await this.#options.verify(payloadOf(statement), signature)) ?? null;
  }

  /** Returns the position of the next statement on a revision, after the one that counts now. */
  next(
    scope: Omit<StatementScope, 'repository'>,
    current: StatementFact | undefined,
  ): Pick<StatementHead, 'sequence' | 'previous'> {
    const mark = this.mark(scope);
    // Of a chain whose end is not known, older statements with higher sequences may turn up. A chain that begins again may have ended
    // at another server with a deletion, which leaves no statement.
    const isKnown = mark?.proven === true && current !== undefined;
    const first = isKnown ? 1 : (this.#options.firstSequence?.() ?? 1);
    const before = Math.max(mark?.sequence ?? 0, current?.head.sequence ?? 0, first - 1);
    const previous =
      current !== undefined && current.head.sequence === before ? current.digest : (mark?.digest ?? null);
    return { sequence: before + 1, previous };
  }

  mark(scope: Omit<StatementScope, 'repository'>): Mark | undefined {
    return this.#options.ledger.mark({ ...scope, repository: this.repository });
  }

  /**
   * Returns the mark of a publication number: which publication counts, or that it was deleted; see
   * publication-mark.ts.
   */
  markOfPublication(path: string, version: string, digest: string): NewMark {
    return this.markOf(publicationScope(path, version), digest);
  }

  /** The next mark of a scope whose marks this ledger makes by itself, without statements. */
  markOf(scope: Omit<StatementScope, 'repository'>, digest: string): NewMark {
    const sequence = (this.mark(scope)?.sequence ?? 0) + 1;
    return { scope: { ...scope, repository: this.repository }, sequence, digest, proven: true };
  }

  raise(entries: readonly NewMark[], durable: boolean): void {
    if (entries.length > 0) this.#options.ledger.raise(entries, { durable });
  }

  /** See `TrustLedger.flushed`, for this repository. */
  flushed(): Promise<void> | undefined {
    return this.#options.ledger.flushed?.(this.repository);
  }

  /** See `TrustLedger.shownOf`. */
  shown(): ShownStates | undefined {
    return this.#options.ledger.shownOf?.(this.repository);
  }

  /** See `TrustLedger.shownBy`. */
  get shownBy(): string | undefined {
    return this.#options.ledger.shownBy;
  }

  /** See `TrustLedger.advanceShown`. */
  advanceShown(refs: string): ContainedStates | undefined {
    return this.#options.ledger.advanceShown?.(this.repository, refs);
  }

  /** Joins what other processes on the ledger have written about records by now; see `TrustLedger.joinLatest`. */
  async joinLatest(records: readonly Omit<StatementScope, 'repository'>[]): Promise<void> {
    const { repository } = this;
    const scopes = records.map((scope) => ({ ...scope, repository }));
    if (scopes.length > 0) await this.#options.ledger.joinLatest?.([...scopes, ...scopes.map(announcedScope)]);
  }

  /** Returns the marks of all repositories that were raised after a version; see `TrustLedger.raisedSince`. */
  raisedSince(version: number): RaisedScopes {
    return this.#options.ledger.raisedSince(version);
  }

  /**
   * Returns why a statement about a revision does not count; undefined if it does. Does not check whether it is the
   * latest one.
   */
  distrustOf(fact: StatementFact | undefined, scope: Omit<StatementScope, 'repository'>): Distrust | undefined {
    if (fact === undefined) return { reason: 'Unsigned', message: 'it carries no signed statement' };
    const { head } = fact;
    if (head.repository !== this.repository) {
      return {
        reason: 'OtherRepository',
        message: `its statement was made for another repository (${head.repository})`,
      };
    }
    if (head.package !== scope.package || head.workspace !== scope.workspace) {
      return { reason: 'OtherRevision', message: `its statement was made for ${head.package}/${head.workspace}` };
    }
    return this.distrustOfSigner(fact.signer);
  }

  /**
   * Returns why a signature does not count; undefined if it does, or if its key is revoked, which depends on the signed statement; see
   * `revocationOf`.
   */
  distrustOfSigner(signer: Signer): Distrust | undefined {
    if (signer === undefined)
      return { reason: 'Unverified', message: 'the signature of its statement was not verified yet' };
    if (signer === null) return { reason: 'BadSignature', message: 'the signature of its statement is not valid' };
    if (this.#trustedKeys().get(signer) !== undefined) return undefined;
    return {
      reason: 'UntrustedKey',
      message: `its statement is signed with ${signer}, which this repository does not trust`,
    };
  }

  /**
   * Returns why a record does not count. `Unproven` is not a reason: such a record counts for metadata, but its verdicts do not, see
   * `isProven`.
   */
  distrustOfRecord(fact: StatementFact | undefined, scope: Omit<StatementScope, 'repository'>): Distrust | undefined {
    const found = this.distrustOf(fact, scope);
    if (found !== undefined || fact === undefined) return found;
    const mark = this.mark(scope);
    const { sequence } = fact.head;
    if (
      mark !== undefined &&
      (sequence < mark.sequence || (sequence === mark.sequence && fact.digest !== mark.digest))
    ) {
      return {
        reason: 'RolledBack',
        message: `its record was replaced by an older or another one (statement ${sequence}, the last one known is ${mark.sequence})`,
        behind: mark.sequence,
      };
    }
    const key = this.#trustedKeys().get(fact.signer ?? '');
    if (key?.revocation === undefined) return undefined;
    // A revoked key can still sign: only statements in the ledger from before count.
    if (mark !== undefined && mark.digest === fact.digest && mark.order <= key.revocation.order) return undefined;
    if (key.revocation.statements?.has(fact.digest) === true) return undefined;
    return revoked(key);
  }

  /**
   * Returns the mark that a record at `scope` raises; undefined if it raises none. Only a record that counts does: otherwise anyone
   * could raise a mark and invalidate the records of others. A record at the first sync may be older than the last one.
   */
  markOfFound(
    fact: StatementFact,
    scope: Omit<StatementScope, 'repository'>,
    isFirstLook: boolean,
  ): NewMark | undefined {
    const { sequence } = fact.head;
    if (sequence <= (this.mark(scope)?.sequence ?? 0)) return undefined;
    if (this.distrustOfRecord(fact, scope) !== undefined) return undefined;
    return {
      scope: { ...scope, repository: this.repository },
      ...{ sequence, digest: fact.digest, proven: !isFirstLook && this.isProven(scope, fact) },
    };
  }

  /**
   * True for a record that is known to be the last one: this ledger knows the chain of statements that it ends. False for what was there
   * when the repository was first seen or after the ledger was lost, and for all that is found on top of that: an older record can be
   * put there later too. A chain of which the ledger knows nothing began after the first look if its sequence says so, which is a time
   * then: another server made it. `isOwn` means that this process signed it: before its mark is raised, as in a dry run, it is the last one too.
   */
  isProven(scope: Omit<StatementScope, 'repository'>, fact: StatementFact, isOwn = false): boolean {
    const mark = this.mark(scope);
    const { sequence } = fact.head;
    if (isOwn && sequence > (mark?.sequence ?? 0)) return true;
    if (this.isBeyondLedger(fact)) return false;
    const first = this.#firstLook();
    if (mark === undefined) {
      const isAnnounced = (this.#announcementOf(fact)?.order ?? -1) > (first?.order ?? -1);
      return isAnnounced || sequence > (first?.sequence ?? Number.POSITIVE_INFINITY);
    }
    // A statement from before the ledger turned out to be outdated may not be the last one.
    return mark.proven && mark.sequence <= sequence && mark.order > (first?.order ?? -1);
  }

  /** Notes that this is the first sync of the repository in the ledger, or that the ledger is older than the repository. */
  noteFirstLook(): void {
    const sequence = this.#options.firstSequence?.();
    if (sequence === undefined) return;
    this.raise([{ scope: { ...FIRST_LOOK, repository: this.repository }, sequence, digest: '', proven: true }], true);
  }

  #firstLook(): Mark | undefined {
    const mark = this.mark(FIRST_LOOK);
    return mark?.proven === true ? mark : undefined;
  }

  /** The key's revocation, for a publication, whose validity depends on where it is on the main branch. */
  revocationOf(
    signer: Signer,
  ): { readonly key: TrustedKey; readonly head: string | undefined; readonly order: number } | undefined {
    const key = signer == null ? undefined : this.#trustedKeys().get(signer);
    if (key?.revocation === undefined) return undefined;
    return { key, head: this.#headAt(key.revocation), order: key.revocation.order };
  }

  /** Returns why pushed statements that a revoked key signed do not count: they were not in the ledger before. */
  revocationOfNew(signer: Signer): Distrust | undefined {
    const revocation = this.revocationOf(signer);
    return revocation === undefined ? undefined : revoked(revocation.key);
  }

  /** Returns the head of the main branch when a key was revoked. */
  #headAt(revocation: Revocation | undefined): string | undefined {
    return revocation && headAmong(revocation.heads, this.repository, this.#options.branch);
  }

  #trustedKeys(): ReadonlyMap<string, TrustedKey> {
    const version = this.#options.ledger.keysVersion;
    if (this.#keys?.version !== version) this.#keys = { version, keys: this.#options.trustedKeys() };
    return this.#keys.keys;
  }
}
