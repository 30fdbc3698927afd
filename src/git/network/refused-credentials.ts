import type { GitCredentials } from '../git-repository.ts';

const REJECTED = 'rejected the credentials';
const REQUIRED = 'requires credentials';

/** What it means that a remote refused a request with these credentials, or without any, because of them. */
export function credentialsMeaning({ basic, source }: GitCredentials = {}): string {
  if (basic !== undefined)
    return source === undefined ? `${REJECTED}: renew them` : `${REJECTED} of ${source}: renew them there`;
  return source === undefined
    ? `${REQUIRED}: put them into the Secret in secretRef`
    : `${REQUIRED}: ${source} has neither username and password nor a token, add them there`;
}

/** What it means that a remote knows the account of a request, and forbids the request. */
export function deniedMeaning({ basic, source }: GitCredentials = {}): string {
  const of = basic === undefined || source === undefined ? '' : ` whose credentials are in ${source}`;
  return `denied the request: check the rights of the account${of}`;
}

/** What a message has of `credentialsMeaning`, also as a server reports it in a status. */
export function refusedCredentials(message: string): 'rejected' | 'missing' | undefined {
  if (message.includes(REJECTED)) return 'rejected';
  // A proxy may require some too.
  return /(?<!a proxy that )requires credentials:/.test(message) ? 'missing' : undefined;
}
