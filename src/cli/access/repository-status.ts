import { setTimeout as pause } from 'node:timers/promises';
import { ERROR_CODES, type ErrorCode, isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import { READ_ERROR_CONDITION, type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { type Condition, findCondition } from '../../resource/object/condition.ts';
import { keyOf, type Stored } from '../../resource/object/object.ts';
import type { Access } from './access.ts';

// The repository controller of a server reads repositories and reports their state. In a data folder without a server, a watch reads them.

type Api = Pick<Access, 'client' | 'clock' | 'namespace' | 'server'>;
type Done = (status: { readonly ready: Condition | undefined; readonly ranAt: number }) => boolean;

/** How long a server may take to read a repository before the command ends. */
const READ_TIMEOUT_MS = 15_000;
const POLL_INTERVAL_MS = 250;
/** Errors of a watch after which the next list may have the status. */
const POLLED = ['Expired', 'Refused', 'Unsupported'] as const;

/** Resolves once the packages of a new repository can be used; throws why they cannot, Timeout after `timeoutMs` milliseconds. */
export async function expectReady(api: Api, object: Stored<Repository>, timeoutMs?: number): Promise<void> {
  await until(api, object, undefined, ({ ready }) => ready?.status === 'True', timeoutMs);
}

/** Has a repository read again now; throws if that fails. */
export async function syncRepository(api: Api, name: string): Promise<void> {
  const { client, clock, namespace } = api;
  const key = { namespace, name };
  const { spec } = await client.get(repositoryKind, key);
  // Times have whole seconds, and a request with a time of before requests nothing.
  const last = Date.parse(spec.sync?.runOnceAt ?? '');
  const wanted = Math.max(Math.floor(clock.now() / 1000) * 1000, Number.isNaN(last) ? 0 : last + 1000);
  const requested = await client.patch(repositoryKind, key, { spec: { sync: { runOnceAt: timestamp(wanted) } } });
  await until(api, requested, readyOf(requested), ({ ranAt }) => ranAt >= wanted);
}

/** The object with its status, for which a new one is waited for, and why the repository cannot be used, if it cannot. */
export async function withStatus(
  api: Api,
  listed: Stored<Repository>,
): Promise<{ readonly object: Stored<Repository>; readonly problem?: string }> {
  const isReported: Done = ({ ready }) => ready !== undefined;
  const object = await until(api, listed, undefined, isReported, READ_TIMEOUT_MS).catch((error: unknown) => {
    if (isSluiceError(error, 'Timeout') || isSluiceError(error, 'NotFound')) return listed;
    throw error;
  });
  const ready = readyOf(object);
  return ready?.status === 'False' ? { object, problem: ready.message } : { object };
}

/** Waits for a status. A Ready condition that became False is a result too. */
async function until(
  { client, server }: Api,
  object: Stored<Repository>,
  before: Condition | undefined,
  done: Done,
  // A process without a server reads the repository itself, until it ends.
  timeoutMs = server === undefined ? undefined : READ_TIMEOUT_MS,
): Promise<Stored<Repository>> {
  const { name, namespace } = keyOf(object);
  const signal = timeoutMs === undefined ? new AbortController().signal : AbortSignal.timeout(timeoutMs);
  const select = { ...(namespace === undefined ? {} : { namespace }), fieldSelector: `metadata.name=${name}` };
  let seen = object;
  const isOver = (now: Stored<Repository>): boolean => {
    seen = now;
    const ready = readyOf(now);
    if (done({ ready, ranAt: Date.parse(now.status?.observedRunOnceAt ?? '') })) return true;
    const isNew = ready?.message !== before?.message || ready?.lastTransitionTime !== before?.lastTransitionTime;
    if (isFailed(ready) && isNew) throw readErrorOf(now) ?? new SluiceError('Unavailable', ready?.message ?? '');
    return false;
  };
  if (isOver(object)) return seen;
  try {
    // A server ends each watch at some time.
    while (!signal.aborted) {
      const { items, resourceVersion } = await client.list(repositoryKind, { ...select, signal });
      const found = items.find(({ metadata }) => metadata.name === name);
      if (found === undefined) throw unregistered(name);
      if (isOver(found)) return seen;
      try {
        for await (const event of client.watch(repositoryKind, { ...select, resourceVersion, signal }))
          if (event.type === 'DELETED') throw unregistered(name);
          else if (event.type === 'MODIFIED' && isOver(event.object)) return seen;
      } catch (error) {
        // Without a watch, such as for a user who may not watch, it polls. A repository that cannot be read has an error of its own.
        if (readErrorOf(seen) !== undefined || !POLLED.some((code) => isSluiceError(error, code))) throw error;
      }
      await pause(POLL_INTERVAL_MS, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  const ready = readyOf(seen);
  if (isFailed(ready)) throw new SluiceError('Unavailable', ready?.message ?? '');
  const time = `within ${(timeoutMs ?? 0) / 1000} s`;
  throw new SluiceError(
    'Timeout',
    server === undefined
      ? `it could not be read ${time}`
      : `the server has not read it ${time}; "sluice repo get ${name}" shows its status`,
  );
}

function unregistered(name: string): SluiceError {
  return new SluiceError('NotFound', `repository "${name}" is not registered any more`);
}

/** Why a repository cannot be read; undefined where only its Ready condition says so, as on a server. */
function readErrorOf({ status }: Repository): SluiceError | undefined {
  const problem = findCondition(status?.conditions, READ_ERROR_CONDITION);
  if (problem === undefined) return undefined;
  return new SluiceError(isErrorCode(problem.reason) ? problem.reason : 'Unavailable', problem.message);
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CODES, text);
}

function isFailed(ready: Condition | undefined): boolean {
  return ready?.status === 'False' && ready.reason === 'Error';
}

function readyOf({ status }: Repository): Condition | undefined {
  return findCondition(status?.conditions, 'Ready');
}
