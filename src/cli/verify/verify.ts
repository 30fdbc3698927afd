import { existsSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { ledgerPath } from '../../app/trust/open-trust.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { commandLine } from '../../foundation/text/command-line.ts';
import { trimEndsOf } from '../../foundation/text/trim-characters.ts';
import type { GitRepository, Ref } from '../../git/git-repository.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import type { Quarantine } from '../../git/process/git-process.ts';
import { allowsSigning, parseAllowedSigners } from '../../git/signing/allowed-signers.ts';
import { mainRef, type RepositoryLayout, recordPrefixIn } from '../../package/model/identity/layout.ts';
import { hostedFolder } from '../../package/store/opening/open-package-repository.ts';
import { takeRevokedKeys } from '../../package/trust/keys/revoked-key-line.ts';
import type { TrustLedger } from '../../package/trust/ledger/trust-ledger.ts';
import { SqliteTrustLedger } from '../../package/trust/sqlite/sqlite-trust-ledger.ts';
import { STATEMENT_NAMESPACE } from '../../package/trust/statement/statement-signature.ts';
import { checkPush } from '../../package/verify/check-push.ts';
import {
  cloneWithoutId,
  cloneWithoutTags,
  emptyFolder,
  layoutOf,
  noSuchFolder,
  refsOfRepository,
  shallowClone,
} from '../../package/verify/clone-refs.ts';
import type { PushedRef } from '../../package/verify/pushed-ref.ts';
import { ReadOnlyLedger } from '../../package/verify/read-only-ledger.ts';
import { type Verification, verifyRepository } from '../../package/verify/verify-repository.ts';
import { folderOf } from '../access/place.ts';
import type { CommandResult, DataOptions, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { table } from '../output/table.ts';
import { expectedRepository } from './expected-repository.ts';

export interface VerifyOptions extends DataOptions {
  readonly allowedSigners?: string;
  readonly branch: string;
  readonly directory: string;
  readonly output: 'text' | 'json' | 'yaml';
  readonly preReceive?: boolean;
  readonly all?: boolean;
  readonly id?: string;
}

/** An address of a Git host, with or without a scheme. */
const ADDRESS = /^(?:[a-z][a-z0-9+.-]*:\/\/|[^/:]+@[^/:]+:)/i;
/** A line of a hook's input has 150 bytes. */
const PUSH_LINE = /^([0-9a-f]{40}) ([0-9a-f]{40}) (\S.*)$/;

/** `sluice verify`: exit code 1 if a statement does not count. */
export async function verify(
  path: string | undefined,
  options: VerifyOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  const place = path ?? (options.preReceive === true ? (invocation.environment.GIT_DIR ?? '.') : undefined);
  if (place === undefined)
    throw new SluiceError(
      'InvalidInput',
      'name the repository, or a clone of it, such as: sluice verify packages.git --allowed-signers allowed-signers',
    );
  const git = await open(place, options, invocation);
  try {
    return await withKeys(options, invocation, async (ledger, stored) => {
      if (options.preReceive === true) return asHook(git, ledger, options, invocation);
      const found = refsOfRepository(await git.listRefs());
      if (await isShallow(pathOf(place))) throw shallowClone(found);
      const { refs, remote } = found;
      const notes = [...found.notes];
      const layout = layoutOf(refs, options.branch, directoryOf(options));
      const hosted = hostedFolder(folderOf(options, invocation.environment).path);
      const checkId = expectedRepository(options.id, stored, pathOf(place), hosted);
      const isClone = remote !== undefined;
      const verification = await verifyRepository({ git, layout, refs, ledger, isClone, checkId });
      const unpublished = verification.verified.filter(({ kind }) => kind === 'placeholder').length;
      if (isClone && unpublished > 0 && !refs.some(({ name }) => name.startsWith('refs/tags/')))
        throw cloneWithoutTags(remote, unpublished);
      if (isClone && verification.needsId) throw cloneWithoutId(remote);
      if (await hasNoFolder(git, layout, refs, verification)) {
        const whole = await verifyRepository({ git, layout: { ...layout, directory: '' }, refs, ledger, isClone });
        if (hasRevisions(whole)) throw noSuchFolder(layout);
        notes.push(emptyFolder(layout));
      }
      return print({ ...verification, notes: [...notes, ...verification.notes] }, options, invocation);
    });
  } finally {
    await git.close();
  }
}

/** True if the folder of the packages is not there, and nothing shows that it was: it is misspelt, or the Repository is new. */
async function hasNoFolder(
  git: GitRepository,
  layout: RepositoryLayout,
  refs: readonly Ref[],
  verification: Verification,
): Promise<boolean> {
  if (layout.directory === '' || hasRevisions(verification)) return false;
  const head = refs.find(({ name }) => name === mainRef(layout))?.oid;
  return head === undefined || (await git.statObjects([`${head}:${layout.directory}`]))[0]?.type !== 'tree';
}

/** Whether it shows packages, or that there were some. */
function hasRevisions({ verified }: Verification): boolean {
  return verified.some(({ kind }) => kind !== 'repository' && kind !== 'adoption');
}

/** The file lists the commits where the history ends. Git reads an empty one as a whole history. */
async function isShallow(gitDirectory: string): Promise<boolean> {
  const file = join(gitDirectory, 'shallow');
  return existsSync(file) && (await stat(file)).size > 0;
}

async function asHook(
  git: GitRepository,
  ledger: ReadOnlyLedger,
  options: VerifyOptions,
  { terminal }: Invocation,
): Promise<CommandResult> {
  const pushed = parsePush(await readAll(process.stdin));
  const refs = await git.listRefs();
  // A push must not choose where the records of a repository are that has some.
  const isUsed = recordPrefixIn(refs.map(({ name }) => name)) !== undefined;
  const arriving = pushed.map(({ ref, new: oid }) => ({ name: ref, oid }));
  const layout = layoutOf(isUsed ? refs : arriving, options.branch, directoryOf(options));
  const refusals = await checkPush({ git, layout, refs, ledger, pushed });
  for (const { ref, message } of refusals) terminal.note(`sluice: ${printable(ref)} is refused: ${printable(message)}`);
  if (refusals.length === 0) return 0;
  terminal.note(
    'sluice: nothing of this push was accepted; push drafts (refs/heads/drafts/…), and publish through Sluice',
  );
  return 1;
}

/** Reads `<old> <new> <ref>` lines. Throws InvalidInput for anything else: a hook must not accept what it does not understand. */
export function parsePush(text: string): PushedRef[] {
  return text.split('\n').flatMap((line) => {
    if (line === '') return [];
    const [, old, oid, ref] = PUSH_LINE.exec(line) ?? [];
    if (old === undefined || oid === undefined || ref === undefined)
      throw new SluiceError(
        'InvalidInput',
        `${JSON.stringify(line)} is no line of a pre-receive hook: <old> <new> <ref>`,
      );
    return { ref, old, new: oid };
  });
}

/**
 * The keys of an allowed-signers file, else those that the ledger of the data folder knows. A data folder that is named gives its marks in
 * both cases; that of the environment need not be the one of the server.
 */
async function withKeys<Result>(
  options: VerifyOptions,
  { environment }: Invocation,
  run: (ledger: ReadOnlyLedger, stored?: TrustLedger) => Promise<Result>,
): Promise<Result> {
  const { allowedSigners, data } = options;
  const signers = allowedSigners === undefined ? undefined : await readSigners(allowedSigners);
  if (signers !== undefined && data === undefined) return run(ReadOnlyLedger.ofKeys(signers));
  const path = ledgerPath(folderOf(options, environment).path);
  if (!existsSync(path)) {
    throw new SluiceError(
      'InvalidInput',
      signers === undefined
        ? `which keys count is not known: give --allowed-signers with what "sluice key show --allowed-signers" prints on the server, or its data folder with --data (there is no ${path})`
        : `there is no ${path}; name the data folder of the server with --data, or leave it out`,
    );
  }
  const ledger = SqliteTrustLedger.openReadOnly(path);
  try {
    const keys = () => signers ?? ledger.keys();
    const known = { keys, mark: ledger.mark.bind(ledger), repository: ledger.repository.bind(ledger) };
    return await run(new ReadOnlyLedger(known), ledger);
  } finally {
    ledger.close();
  }
}

async function readSigners(file: string) {
  let content: string;
  try {
    content = await readFile(file, 'utf8');
  } catch (error) {
    throw new SluiceError('InvalidInput', `cannot read the allowed-signers file ${file}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const { revoked, signers } = parseSigners(file, content);
  const isRevoked = new Set(revoked.map(({ fingerprint }) => fingerprint));
  const lines = signers.filter(
    (line) => allowsSigning(line, STATEMENT_NAMESPACE, Date.now()) && !isRevoked.has(line.publicKey.fingerprint),
  );
  const trusted = lines.map(({ publicKey, principals }) => ({
    ...{ fingerprint: publicKey.fingerprint, publicKey: publicKey.line, comment: principals },
    ...{ origin: 'added' as const, addedAt: '1970-01-01T00:00:00Z' },
  }));
  if (revoked.length === 0 && trusted.length === 0)
    throw new SluiceError(
      'InvalidInput',
      `the allowed-signers file ${file} has no keys that sign statements; write it again with "sluice key show --allowed-signers" on the server`,
    );
  return [...revoked, ...trusted];
}

function parseSigners(file: string, content: string) {
  try {
    const { revoked, rest } = takeRevokedKeys(content);
    return { revoked, signers: parseAllowedSigners(rest) };
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    throw new SluiceError('InvalidInput', `${file}: ${error.message}`, { cause: error });
  }
}

async function open(path: string, { preReceive }: VerifyOptions, { environment }: Invocation): Promise<GitRepository> {
  if (ADDRESS.test(path) && !existsSync(path)) throw notLocal(path);
  const place = pathOf(path);
  const quarantine = preReceive === true ? quarantineOf(environment) : undefined;
  try {
    return await openRepository(place, { readOnly: true, ...(quarantine === undefined ? {} : { quarantine }) });
  } catch (error) {
    if (!isSluiceError(error, 'NotFound')) throw error;
    throw noRepository(path, error);
  }
}

/** The next step where there is no repository. A linked work tree has none of its own, and can be cloned. */
function noRepository(path: string, cause: unknown): SluiceError {
  const folder = resolve(path);
  const isWorkTree = statSync(join(folder, '.git'), { throwIfNoEntry: false })?.isFile() === true;
  const [from, copy] = isWorkTree ? [folder, `${basename(folder)}.git`] : ['ADDRESS', 'packages.git'];
  const clone = commandLine(['git', 'clone', '--mirror', from, copy]);
  const found = isWorkTree ? 'is a linked work tree' : 'is neither a repository nor the top folder of a clone';
  return new SluiceError(
    'InvalidInput',
    `there is no Git repository at ${folder}, which ${found}; name a repository, or clone one and verify the clone: ${clone}, then "${commandLine(['sluice', 'verify', copy])}"`,
    { cause },
  );
}

/** The next step for an address, without a password in it. */
function notLocal(address: string): SluiceError {
  const shown = address.replace(/(?<=:\/\/)[^/@]*@/, '');
  const folder = `${/([^/:]+?)(?:\.git)?\/*$/.exec(shown)?.[1] ?? 'repository'}.git`;
  return new SluiceError(
    'InvalidInput',
    `${shown} is an address, and a repository on this machine is verified: ${commandLine(['git', 'clone', '--mirror', shown, folder])}, then ${commandLine(['sluice', 'verify', folder])}`,
  );
}

function pathOf(place: string): string {
  const inside = join(place, '.git');
  return resolve(existsSync(inside) ? inside : place);
}

/** The objects of a push are in a separate folder until a hook accepts them. */
function quarantineOf({
  GIT_OBJECT_DIRECTORY,
  GIT_ALTERNATE_OBJECT_DIRECTORIES,
}: NodeJS.ProcessEnv): Quarantine | undefined {
  if (GIT_OBJECT_DIRECTORY === undefined) return undefined;
  return { objectDirectory: resolve(GIT_OBJECT_DIRECTORY), alternates: GIT_ALTERNATE_OBJECT_DIRECTORIES ?? '' };
}

function directoryOf({ directory }: VerifyOptions): string {
  return trimEndsOf(directory, '/');
}

function print({ id, verified, notes }: Verification, options: VerifyOptions, { terminal }: Invocation): CommandResult {
  const findings = verified.filter(({ finding }) => finding !== undefined);
  const code = findings.length === 0 ? 0 : 1;
  if (options.output !== 'text') {
    const value = { repository: id ?? null, findings: findings.length, verified, notes };
    terminal.out.write(options.output === 'json' ? toJson(value) : toYaml(value));
    return code;
  }
  const shown = options.all === true ? verified : findings;
  if (shown.length > 0) {
    const rows = shown.map(({ ref, kind, finding }) => [
      ...[finding === undefined ? 'in band' : 'out of band', kind, ref, finding?.reason ?? '', finding?.message ?? ''],
    ]);
    terminal.out.write(
      table(
        ['state', 'what', 'ref', 'reason', 'why'],
        rows.map((row) => row.map(printable)),
      ),
    );
  }
  for (const note of notes) terminal.note(`${terminal.style('yellow', 'note:', terminal.err)} ${printable(note)}`);
  const good = verified.length - findings.length;
  terminal.line(`${good} in band, ${findings.length} out of band${id === undefined ? '' : `; repository ${id}`}`);
  return code;
}
