import type { Octokit } from 'octokit';
import type { ZodType } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { checkedForm } from '../http/checked-form.ts';
import { type ForgeTransport, requestName } from '../http/forge-transport.ts';
import type { GithubFetch } from './github-fetch.ts';

/** Calls one of octokit's methods, with the options that every call takes. */
export type Send = (
  rest: Octokit['rest'],
  options: { readonly request: { readonly signal: AbortSignal } },
  /** For what has no method. */
  request: Octokit['request'],
) => Promise<{ readonly data: unknown; readonly url: string }>;

/** Options of an octokit that neither repeats nor delays requests, which the caller decides about, and writes nothing to the console. */
export function octokitOptions(transport: ForgeTransport, fetch: GithubFetch) {
  const ignore = (): void => undefined;
  return {
    ...{ baseUrl: transport.api, userAgent: 'sluice', request: { fetch } },
    ...{ retry: { enabled: false }, throttle: { enabled: false } },
    log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
  };
}

/** Returns the data of a response in the form of a schema. Rejects as the contract of `Forge` says. */
export async function callGitHub<Result>(
  transport: ForgeTransport,
  octokit: Pick<Octokit, 'request' | 'rest'>,
  schema: ZodType<Result>,
  signal: AbortSignal,
  send: Send,
): Promise<Result> {
  let response: Awaited<ReturnType<Send>>;
  try {
    response = await send(octokit.rest, { request: { signal } }, octokit.request);
  } catch (error) {
    signal.throwIfAborted();
    const { RequestError } = await import('octokit');
    if (!(error instanceof RequestError)) throw error;
    // What `fetch` rejected with.
    if (error.cause instanceof SluiceError) throw error.cause;
    const { status, request, response: failed } = error;
    const headers = Object.fromEntries(
      Object.entries(failed?.headers ?? {}).map(([name, value]) => [name, `${value}`]),
    );
    const text = JSON.stringify(failed?.data ?? null);
    throw transport.errorOf(requestName(request.method, request.url), { status, headers, text });
  }
  return checkedForm(schema, response.data, requestName('a request to', response.url));
}
