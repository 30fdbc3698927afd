import { createHash } from 'node:crypto';
import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import type { GitRemote, GitRepository, Oid, Signature } from '../../../git/git-repository.ts';
import { canonicalAddressNow } from '../../../git/open/repository-address.ts';
import { identityRef, mainRef, otherIdentityRef, type RepositoryLayout } from '../../model/identity/layout.ts';
import type { AttributedPushes } from '../../trust/ledger/attributed-pushes.ts';
import type { TrustedKey, TrustLedger } from '../../trust/ledger/trust-ledger.ts';
import {
  newRepositoryId,
  parseRepositoryId,
  REPOSITORY_SCOPE,
  type RepositoryIdStatement,
} from '../../trust/repository-id.ts';
import { RepositoryTrust } from '../../trust/repository-trust.ts';
import { formatStatement, type SignedStatement, STATEMENT_VERSION } from '../../trust/statement/statement.ts';
import type { StatementSigner, VerifySignature } from '../../trust/statement/statement-signature.ts';

/** The signing key and the ledger of a server, for all its repositories. */
export interface ServerTrust {
  /** Returns the current key; called for each statement. Throws a SluiceError with the next step if no key may sign. */
  readonly signer: () => StatementSigner;
  readonly verify: VerifySignature;
  readonly ledger: TrustLedger;
  /** Push reports of Git hosts; without it no report counts. */
  readonly pushes?: AttributedPushes | undefined;
}

export interface OpenTrustOptions {
  readonly git: GitRepository;
  /** Set if `git` is a mirror. */
  readonly remote: GitRemote | undefined;
  readonly layout: RepositoryLayout;
  readonly address: string;
  readonly clock: Clock;
  readonly identity: { readonly name: string; readonly email: string };
  readonly server: ServerTrust;
  /** The keys that this repository trusts; called again when those of the ledger changed. */
  readonly trustedKeys: () => ReadonlyMap<string, TrustedKey>;
  /** Problems of the keys; see `RepositoryTrustOptions`. */
  readonly problems?: () => readonly string[];
  /** True for the address of another registered repository. */
  readonly isRegistered?: ((address: string) => Promise<boolean>) | undefined;
  /** Gives a copy of another repository a new id. */
  readonly newId?: boolean | undefined;
  /** Brings the refs of the remote. */
  readonly refetch: () => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

export interface OpenedTrust {
  readonly trust: RepositoryTrust;
  /** True if the ledger did not know the repository. */
  readonly isFirstLook: boolean;
}

/**
 * Finds out which repository this is, by its id in Git, and makes the id where there is none. What the ledger knows of an address
 * wins over Git, unless a trusted key signed the change: every user who may push can write the ref.
 *
 * Throws Refused for a copy of another registered repository.
 */
export async function openRepositoryTrust(options: OpenTrustOptions): Promise<OpenedTrust> {
  const address = canonicalAddressNow(options.address);
  const present = await presentId(options, address);
  if (present.id !== undefined) return enterAs(options, present.id, address);
  // Another process may have written an id since: only the ref in which there was none is written, as every statement names the id.
  const make = async () => {
    const { id, ref } = await presentId(options, address);
    return enterAs(options, id ?? (await writeId(options, ref)), address);
  };
  try {
    return await make();
  } catch (error) {
    if (!isSluiceError(error) || options.signal?.aborted === true || error.code === 'Timeout') throw error;
    // A repository that cannot be written now can still be read, and no statement was ever signed for it.
    const writeNow = async () => (await make()).trust.repository;
    return { trust: trustOf(options, derivedId(address), writeNow), isFirstLook: true };
  }
}

interface PresentId {
  /** What the ref of this layout has. */
  readonly ref: WrittenId | undefined;
  /** The id that the repository keeps, of Git or of the ledger; undefined if it needs one. */
  readonly id: string | undefined;
}

async function presentId(options: OpenTrustOptions, address: string): Promise<PresentId> {
  const { git, layout, server, newId } = options;
  const known = server.ledger.repositoryAt(address);
  const ref = await readId(git, identityRef(layout));
  const written = ref ?? (await readId(git, otherIdentityRef(layout)));
  return { ref, id: newId === true ? undefined : await acceptedId(options, written?.signed, known?.id) };
}

/** Throws Refused for a copy of another registered repository. */
async function enterAs(options: OpenTrustOptions, id: string, address: string): Promise<OpenedTrust> {
  const trust = trustOf(options, id);
  const isFirstLook = await enter(options, id, address);
  if (isFirstLook) trust.noteFirstLook();
  return { trust, isFirstLook };
}

function trustOf(options: OpenTrustOptions, repository: string, makeId?: () => Promise<string>): RepositoryTrust {
  const { server, layout, address, trustedKeys, problems, clock } = options;
  const firstSequence = () => clock.now();
  const { branch } = layout;
  const canonical = canonicalAddressNow(address);
  return new RepositoryTrust({
    ...{ ...server, repository, branch, trustedKeys, problems, firstSequence },
    ...{ writeId: makeId, readId: () => enterLater(options, canonical), address: canonical },
  });
}

/**
 * Enters the id that a trusted key gave the repository since it was opened, as the next opening would: the process that wrote it to Git may have
 * ended before it wrote the ledger, or has another ledger.
 */
async function enterLater(options: OpenTrustOptions, address: string): Promise<void> {
  const { ledger } = options.server;
  const known = ledger.repositoryAt(address);
  if (known === undefined) return;
  const { id } = await presentId({ ...options, newId: false }, address);
  // The id of a copy at another address does not end the syncs of this repository.
  if (id !== undefined && ledger.repository(id) === undefined) await enterAs(options, id, address);
}

const COPY = 'this is a copy of the repository at';

/** True for the refusal of a copy, also as a server reports it in a status. */
export function isCopyMessage(message: string): boolean {
  return message.includes(COPY);
}

/** Adds the repository to the ledger; true if it was new. */
async function enter(options: OpenTrustOptions, id: string, address: string): Promise<boolean> {
  const { server, git, layout, isRegistered } = options;
  const before = server.ledger.repository(id)?.address;
  if (before === address) return false;
  if (before !== undefined && (await isRegistered?.(before)) === true)
    throw new SluiceError(
      'Refused',
      `${COPY} ${before} (id ${id}); "sluice repo adopt <name> --new-id" makes it a separate repository`,
    );
  const head = await git.resolveRef(mainRef(layout));
  const mainHeads = head === undefined ? {} : { [layout.branch]: head };
  const entered = server.ledger.enterRepository({ id, address, mainHeads }, before);
  // Another process has entered it since, at an address that this one has not checked.
  if (entered === 'elsewhere') return enter(options, id, address);
  await server.ledger.flushed?.();
  return entered === 'new';
}

interface WrittenId {
  readonly oid: Oid;
  /** Undefined if it is not an id. */
  readonly signed: SignedStatement<RepositoryIdStatement> | undefined;
}

async function readId(git: GitRepository, ref: string): Promise<WrittenId | undefined> {
  const oid = await git.resolveRef(ref);
  if (oid === undefined) return undefined;
  try {
    return { oid, signed: parseRepositoryId((await git.readCommit(oid)).message) };
  } catch (error) {
    // Whatever a push put there.
    if (isSluiceError(error, 'Corrupt') || isSluiceError(error, 'NotFound')) return { oid, signed: undefined };
    throw error;
  }
}

/** The id that counts: that of the ledger, unless a trusted key signed a later one. */
async function acceptedId(
  options: OpenTrustOptions,
  signed: SignedStatement<RepositoryIdStatement> | undefined,
  known: string | undefined,
): Promise<string | undefined> {
  if (signed === undefined || signed.statement.repository === known) return known;
  // The first sync accepts the id that it finds: with a foreign id, only statements that were signed for it count.
  if (known === undefined) return signed.statement.repository;
  const trust = trustOf(options, known);
  const signer = await trust.signerOf(signed);
  // A revoked key can still sign.
  const isTrusted = trust.distrustOfSigner(signer) === undefined && trust.revocationOf(signer) === undefined;
  return isTrusted && signed.statement.previous === known ? signed.statement.repository : known;
}

/** Writes a new id, or returns the one that another process wrote meanwhile. */
async function writeId(options: OpenTrustOptions, before: WrittenId | undefined): Promise<string> {
  const { git, remote, layout, clock, identity, signal } = options;
  const id = newRepositoryId();
  const statement: RepositoryIdStatement = {
    ...{ statement: STATEMENT_VERSION, kind: 'repository', repository: id, ...REPOSITORY_SCOPE, sequence: 1 },
    previous: before?.signed?.statement.repository ?? null,
  };
  const { signed } = await trustOf(options, id).sign(statement);
  const signature: Signature = { ...identity, time: clock.now() };
  const oid = await git.writeCommit({
    tree: await git.editTree(undefined, new Map()),
    parents: [],
    author: signature,
    committer: signature,
    message: formatStatement(`Repository ${id}`, signed),
  });
  const ref = identityRef(layout);
  const update =
    before === undefined
      ? ({ type: 'create', ref, new: oid } as const)
      : ({ type: 'update', ref, old: before.oid, new: oid } as const);
  try {
    if (remote !== undefined) await git.push(remote, [update], signal);
    await git.transaction([update]);
    return id;
  } catch (error) {
    if (!isSluiceError(error, 'Conflict') || options.newId === true) throw error;
    // Another process may have been first.
    await options.refetch();
    const found = (await readId(git, ref))?.signed?.statement.repository;
    if (found === undefined) throw error;
    return found;
  }
}

/** Returns a substitute for the id of a read-only repository, for which no statement was ever signed. */
function derivedId(address: string): string {
  return `address-${createHash('sha256').update(address).digest('hex').slice(0, 32)}`;
}
