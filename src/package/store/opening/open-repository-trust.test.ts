import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { MAIN_LAYOUT, newServerTrust, trustOf } from '../../../../test/support/trust.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { GitRepository } from '../../../git/git-repository.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { identityRef } from '../../model/identity/layout.ts';
import { readRepositoryId } from '../../trust/repository-id.ts';
import type { ServerTrust } from './open-repository-trust.ts';

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

/** The repository as a process sees it that is stopped after its read `stoppedAt` of the ref with the id, while `meanwhile` runs. */
function stopped(stoppedAt: number, meanwhile: () => Promise<unknown>): GitRepository {
  let reads = 0;
  const resolveRef: GitRepository['resolveRef'] = async (ref) => {
    const oid = await git.resolveRef(ref);
    if (ref === REF) reads += 1;
    if (ref === REF && reads === stoppedAt) await meanwhile();
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
