import { untilEnded } from '../../../src/foundation/concurrency/until-ended.ts';
import { messageOf, SluiceError } from '../../../src/foundation/sluice-error.ts';
import { cleanText } from '../../../src/foundation/text/clean-text.ts';
import type { GitNetwork } from '../../../src/git/network/git-network.ts';
import { checkRemoteUrl } from '../../../src/git/network/remote-url.ts';
import { ConnectionPool } from '../../../src/git/remote/http/connection-pool.ts';
import type { Verification } from '../../../src/rollout/wave/observation.ts';

/** Sends a GET request and returns the status of the response. */
export type Probe = (url: string, signal: AbortSignal) => Promise<number>;

const TIMEOUT_MS = 10_000;
/** Repositories and paths may contain what an address may not. */
const SAFE = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;

/**
 * Probes addresses that users of the API chose: the rules for Git hosts apply, also to the address that a name leads to; a redirect is a
 * response like others, and the body is not read.
 */
export function httpProbe(network: GitNetwork): Probe {
  return async (url, signal) => {
    const { origin, pathname, search } = new URL(url);
    checkRemoteUrl(origin, network.hosts);
    const pool = new ConnectionPool(origin, network);
    try {
      await pool.checkHost();
      const response = await pool.for(undefined).request({
        ...{ origin, method: 'GET', path: `${pathname}${search}`, signal },
        headers: { 'user-agent': 'sluice', accept: '*/*' },
      });
      response.body.on('error', () => undefined);
      response.body.destroy();
      return response.statusCode;
    } finally {
      await pool.close();
    }
  };
}

/** The address of a target. InvalidInput for a package whose path cannot be part of one. */
export function probeAddress(
  template: string,
  { repository, package: path }: { readonly repository: string; readonly package: string },
): string {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const address = template.replace(/\{(repository|package|name)\}/g, (_, field: string) => {
    const value = field === 'repository' ? repository : field === 'package' ? path : name;
    if (SAFE.test(value) && !value.split('/').includes('..')) return value;
    throw new SluiceError('InvalidInput', `the ${field} of ${repository}/${path} cannot be part of an address`);
  });
  if (URL.parse(address) === null)
    throw new SluiceError(
      'InvalidInput',
      `${JSON.stringify(address)} is not a URL; correct spec.verification.http.url`,
    );
  return address;
}

/**
 * The verification by a probe, within a limited time, whatever it waits for. Its message names the address without the query, which may contain a
 * token.
 */
export async function verifyByProbe(probe: Probe, url: string, signal: AbortSignal): Promise<Verification> {
  const { origin, pathname } = new URL(url);
  const address = `${origin}${pathname}`;
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const ended = AbortSignal.any([signal, limit]);
  try {
    const status = await untilEnded(ended, () => probe(url, ended));
    if (status >= 200 && status < 300) return { result: 'Verified' };
    return { result: 'Degraded', message: `${address} responded with status ${status}` };
  } catch (error) {
    const text = limit.aborted ? `it did not respond within ${TIMEOUT_MS / 1000} s` : messageOf(error);
    const message = cleanText(text.replaceAll(url, address), 300);
    return { result: 'Unreachable', message: `cannot probe ${address}: ${message}` };
  }
}
