import { cp } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { MAIN_LAYOUT, newServerTrust, trustOf } from '../../../../test/support/trust.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { GitRepository } from '../../../git/git-repository.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { canonicalAddressNow } from '../../../git/open/repository-address.ts';
import { identityRef, mainRef } from '../../model/identity/layout.ts';
import { readRepositoryId } from '../../trust/repository-id.ts';
import { type OpenedTrust, openRepositoryTrust, type ServerTrust } from './open-repository-trust.ts';

const REF = identityRef(MAIN_LAYOUT);

let scratch: Scratch;
/** Of two processes on one data folder. */
let server: ServerTrust;
let git: GitRepository;
beforeEach(async () => {
  scratch = await scratchRepository();
  server = newServerTrust();
  git = await openRepository(scratch.path);
});
afterEach(async () => {
  await git.close();
  await scratch[Symbol.asyncDispose]();
});

const open = (of = git) => trustOf(of, scratch.path, MAIN_LAYOUT, server);

async function idInGit(): Promise<string | undefined> {
  const oid = await git.resolveRef(REF);
  return oid === undefined ? undefined : readRepositoryId(git, oid);
}

/** The repository as a process sees it that is stopped after its read `stoppedAt` of a ref, while `meanwhile` runs. */
function stopped(stoppedAt: number, meanwhile: () => Promise<unknown>, stoppedRef = REF): GitRepository {
  let reads = 0;
  const resolveRef: GitRepository['resolveRef'] = async (ref) => {
    const oid = await git.resolveRef(ref);
    if (ref === stoppedRef) reads += 1;
    if (ref === stoppedRef && reads === stoppedAt) await meanwhile();
    return oid;
  };
  return withMethods({ resolveRef });
}

function withMethods(methods: Partial<GitRepository>): GitRepository {
  return new Proxy(git, {
    get(target, name) {
      if (name in methods) return Reflect.get(methods, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

test.each([1, 2])('a process keeps the id that another one writes after its read %i of the ref', async (stoppedAt) => {
  const first: string[] = [];
  const second = await open(stopped(stoppedAt, async () => first.push((await open()).trust.repository)));
  expect([second.trust.repository, await idInGit()]).toEqual([first[0], first[0]]);
  // The first look was that of the first process: what this one has signed since is proven.
  expect(second.isFirstLook).toBe(false);
});

test('a process that could not write an id takes the one of another process before it signs', async () => {
  let isFull = true;
  const transaction: GitRepository['transaction'] = async (updates) => {
    if (isFull) throw new SluiceError('Unavailable', 'the disk is full');
    await git.transaction(updates);
  };
  const second = await open(withMethods({ transaction }));
  expect([second.trust.repository, await idInGit()]).toEqual([expect.stringMatching(/^address-/), undefined]);
  isFull = false;
  const first = await open();
  await second.trust.expectId();
  expect([second.trust.repository, await idInGit()]).toEqual([first.trust.repository, first.trust.repository]);
});

const MAIN = mainRef(MAIN_LAYOUT);

/** With the id in Git, and a ledger that does not know it, as after it was lost. */
async function loseLedger(): Promise<void> {
  await open();
  server = newServerTrust();
}

test('a process that looks first takes back nothing that another one has noted since', async () => {
  await loseLedger();
  let id = '';
  const meanwhile = async () => {
    id = (await open()).trust.repository;
    server.ledger.noteMain(id, 'main', 'a'.repeat(40));
  };
  const second = await open(stopped(1, meanwhile, MAIN));
  expect(second.isFirstLook).toBe(false);
  expect(server.ledger.repository(id)?.mainHeads).toEqual({ main: 'a'.repeat(40) });
});

/** Opens a copy of the repository; `registered` are the addresses of all. */
async function openCopy(address: string, registered: readonly string[], of?: GitRepository): Promise<OpenedTrust> {
  const copy = of ?? (await openRepository(address));
  try {
    return await openRepositoryTrust({
      ...{ git: copy, remote: undefined, layout: MAIN_LAYOUT, address, server, clock: scratch.clock },
      identity: { name: 'sluice', email: 'sluice@localhost' },
      isRegistered: async (other) => registered.map(canonicalAddressNow).includes(other),
      trustedKeys: () => new Map(server.ledger.keys().map((key) => [key.fingerprint, key])),
      refetch: async () => undefined,
    });
  } finally {
    if (of === undefined) await copy.close();
  }
}

test.each([
  { from: 'a ledger that does not know it', isKnown: false },
  { from: 'an address that it has left', isKnown: true },
])('of two copies that are opened at once, one is refused: from $from', async ({ isKnown }) => {
  const [first, second, before] = ['first', 'second', 'before'].map((name) => `${scratch.path}-${name}`) as [
    string,
    string,
    string,
  ];
  await loseLedger();
  for (const copy of [first, second, before]) await cp(scratch.path, copy, { recursive: true });
  if (isKnown) await openCopy(before, []);
  const registered = [first, second];
  const meanwhile = () => openCopy(second, registered);
  await expect(openCopy(first, registered, stopped(1, meanwhile, MAIN))).rejects.toThrow(
    /^this is a copy of the repository at .*-second /,
  );
  await expect(openCopy(first, registered)).rejects.toThrow(/^this is a copy/);
  const addresses = server.ledger.repositories().map(({ address }) => address);
  expect(addresses).toEqual([canonicalAddressNow(second)]);
});
