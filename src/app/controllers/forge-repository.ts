import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { HostRules } from '../../git/network/host-rules.ts';
import { checkRemoteUrl, readRemoteUrl } from '../../git/network/remote-url.ts';

/**
 * Owner and name of a repository on a host. Its address has to be on the host of the API: users who may register repositories must not decide
 * which reviews of which other host count.
 */
export function repositoryAt(
  address: string,
  api: string,
  field: string,
): { readonly owner: string; readonly name: string } {
  const { endpoint } = readRemoteUrl(address);
  const url = endpoint === undefined ? null : URL.parse(endpoint.url);
  const host = gitHostOf(api);
  if (url === null || url.hostname !== host)
    throw new SluiceError(
      'InvalidInput',
      `the repository is not on ${host}, which ${field.replace('.secretRef', '.api')} names; change that address, or what refers to the repository`,
    );
  if (url.protocol === 'https:' && URL.parse(api)?.protocol !== 'https:')
    throw new SluiceError(
      'InvalidInput',
      `${field.replace('.secretRef', '.api')} is not an https:// address, as that of the repository is, so that the token would be readable on the way; change it`,
    );
  // A host can be below a path.
  const parts = url.pathname
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .split('/');
  const [name, owner] = [parts.pop(), parts.pop()];
  if (!name || !owner)
    throw new SluiceError('InvalidInput', `the address of the repository does not end with <owner>/<name>`);
  return { owner, name };
}

/** Why proposals in a registered repository get no pull request on a host; undefined if its address fits. `field` as in `repositoryAt`. */
export function forgeProblem(address: string, api: string, field: string): string | undefined {
  try {
    // One of a data folder, or a path, is on no host.
    repositoryAt(/^(?:\/|sluice:)/.test(address) ? 'file:///' : address, api, field);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Why an API is none of the kind that a policy or target names: some responses of Gitea have the form of those of GitHub, and mean other things.
 * `field` as in `repositoryAt`. Undefined if it can be.
 */
export function providerProblem(provider: string, api: string, field: string): string | undefined {
  const path = URL.parse(api)?.pathname.replace(/\/+$/, '') ?? '';
  const isOfGitHub = provider === 'github';
  const found = /\/api\/v(\d)$/.exec(path)?.[1];
  const isOther = isOfGitHub ? found === '1' : found === '3';
  if (!isOther) return undefined;
  const what = isOfGitHub ? 'Gitea and Forgejo' : 'GitHub';
  const of = (name: string) => field.replace('.secretRef', `.${name}`);
  return `${of('api')} ends with /api/v${found}, as that of ${what} does, and ${of('provider')} is ${provider}; change forge.api or forge.provider`;
}

/** Throws why the API may not be connected to, with the field that names it. `field` as in `repositoryAt`. */
export function expectPermittedApi(api: string, field: string, hosts: HostRules): void {
  try {
    checkRemoteUrl(new URL(api).origin, hosts);
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    throw new SluiceError(error.code, `${field.replace('.secretRef', '.api')}: ${error.message}`, { cause: error });
  }
}

/** The host of the repositories of an API: GitHub's own services have one of its own for that, GitHub Enterprise Server has not. */
function gitHostOf(api: string): string {
  const { hostname } = new URL(api);
  return /^api\.(github\.com|[^.]+\.ghe\.com)$/.exec(hostname)?.[1] ?? hostname;
}
