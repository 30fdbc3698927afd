// What errors of a host say beside its own message, and what programs read back from that.

/** Where the API of the host may not be, which a status 404 does not distinguish from a repository that is not there. */
const WRONG_API = 'forge.api (that of Gitea ends with /api/v1) or forge.provider is not that of the host';

/** What the error of a status 401 says of the token, which that of an App does not have. */
export function invalidTokenText(tokenName: string): string {
  return `the token of ${tokenName} is not valid; put a new one there`;
}

/** What the error of a status 404 says. */
export function notFoundText(tokenName: string): string {
  return `it does not exist, the token of ${tokenName} cannot read it, or ${WRONG_API}`;
}

/** Where there is no response at all. */
const UNREACHED = 'the host does not respond, or forge.api is not its address';

/** What the error of a request without a response says. */
export function unreachedText(): string {
  return UNREACHED;
}

/** The message of an error without `notFoundText`, which misleads where the repository is known to be there. */
export function withoutNotFoundText(message: string): string {
  const at = message.indexOf('; it does not exist, the token of ');
  return at === -1 || !message.includes(WRONG_API) ? message : message.slice(0, at);
}

/** Whether the message of an error has `notFoundText` or `unreachedText`: the policy may name another API than that of the host. */
export function isAboutApi(message: string): boolean {
  return message.includes(WRONG_API) || message.includes(UNREACHED);
}

/** Whether the message of an error is about the key or the installation of an App, which has no token. Addresses can have its name. */
export function isAboutCredentialsOfApp(message: string): boolean {
  return /(?:^| )(?:the App|App \d+)(?![\w/-])/.test(message);
}

/** Whether the message of an error names a Secret, and not another one whose name begins with it. */
export function isAboutSecret(message: string, namespace: string, name: string): boolean {
  const [, ...after] = message.split(`Secret ${namespace}/${name}`);
  return after.some((rest) => !/^\.?[a-z0-9-]/.test(rest));
}
