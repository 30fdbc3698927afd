import { createPrivateKey } from 'node:crypto';
import type { z } from 'zod';
import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { invalidTokenText } from '../http/error-texts.ts';
import type { ForgeTransport } from '../http/forge-transport.ts';
import { callGitHub, octokitOptions } from './github-call.ts';
import { githubFetch } from './github-fetch.ts';
import { installationSchema, installationTokenSchema } from './github-schemas.ts';

/** What a token is narrowed to; docs/github-app.md explains each. */
const PERMISSIONS = { checks: 'write', contents: 'read', pull_requests: 'write' } as const;
/** A token is not used in the last part of its hour. */
const MARGIN_MS = 5 * 60_000;
const DOCUMENTATION = 'see docs/github-app.md';

export interface AppCredentials {
  readonly id: number;
  /** RSA, PEM. */
  readonly privateKey: string;
  /** Default: the one in the repository. */
  readonly installation?: number | undefined;
}

export interface InstallationTokensOptions {
  readonly transport: ForgeTransport;
  readonly owner: string;
  readonly name: string;
  /** What holds the private key, for messages. */
  readonly tokenName: string;
  /** The token is used to merge. */
  readonly mayMerge?: boolean;
  /** The token is used to read members of teams. */
  readonly usesTeams?: boolean;
  /** The token is used for issues. */
  readonly usesIssues?: boolean;
  /** Milliseconds. Default: the time of the system. */
  readonly now?: () => number;
}

interface Current {
  readonly key: string;
  readonly token: Promise<z.infer<typeof installationTokenSchema>>;
  /** Milliseconds since 1970. */
  until: number;
}

/** Tokens of an App for one repository, with no more permissions than a `Forge` needs. Each is used until shortly before its end. */
export class InstallationTokens {
  readonly #options: InstallationTokensOptions;
  #current: Current | undefined;

  constructor(options: InstallationTokensOptions) {
    this.#options = options;
  }

  /** Concurrent callers share one token. */
  token(app: AppCredentials, signal: AbortSignal): Promise<string> {
    return untilEnded(signal, async () => {
      const { now = Date.now } = this.#options;
      const key = JSON.stringify(app);
      let current = this.#current;
      if (current?.key !== key || now() >= current.until) {
        const created: Current = { key, token: this.#create(app), until: Number.POSITIVE_INFINITY };
        this.#current = created;
        current = created;
      }
      try {
        const { token, expires_at: end } = await current.token;
        current.until = Date.parse(end) - MARGIN_MS;
        return token;
      } catch (error) {
        if (this.#current === current) this.#current = undefined;
        throw error;
      }
    });
  }

  /** Has another one created: the host does not accept it. */
  forget(): void {
    this.#current = undefined;
  }

  async #create({ id, privateKey, installation }: AppCredentials): Current['token'] {
    const {
      transport,
      owner,
      name,
      tokenName,
      mayMerge = false,
      usesIssues = false,
      usesTeams = false,
    } = this.#options;
    const permissions = {
      ...PERMISSIONS,
      ...(mayMerge ? { contents: 'write' as const } : {}),
      ...(usesTeams ? { members: 'read' as const } : {}),
      ...(usesIssues ? { issues: 'write' as const } : {}),
    };
    // Shared by callers: that one of them ends must not end it, and each request has a limit of its own.
    const { signal } = new AbortController();
    const fetch = githubFetch(transport);
    const { App, Octokit } = await import('octokit');
    const { octokit } = new App({
      appId: id,
      privateKey: readableKey(privateKey, tokenName),
      Octokit: Octokit.defaults(octokitOptions(transport, fetch)),
      log: octokitOptions(transport, fetch).log,
    });
    try {
      const of =
        installation ??
        (
          await callGitHub(transport, octokit, installationSchema, signal, ({ apps }, options) =>
            apps.getRepoInstallation({ owner, repo: name, ...options }),
          )
        ).id;
      return await callGitHub(transport, octokit, installationTokenSchema, signal, ({ apps }, options) =>
        apps.createInstallationAccessToken({
          ...{ installation_id: of, repositories: [name], permissions },
          ...options,
        }),
      );
    } catch (error) {
      throw explained(error, id, `${owner}/${name}`, tokenName);
    }
  }
}

/** The key in a form that octokit reads. Throws InvalidInput. */
export function readableKey(text: string, tokenName: string): string {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === 'rsa') return key.export({ type: 'pkcs8', format: 'pem' }).toString();
  } catch {
    // The message of OpenSSL does not help, and the next one says what is needed.
  }
  throw new SluiceError(
    'InvalidInput',
    `the private key of the App in ${tokenName} is no RSA key in PEM; put the file there that GitHub generated, as it is`,
  );
}

/** Says of what an App lacks how to give it that. */
function explained(error: unknown, id: number, repository: string, tokenName: string): unknown {
  const next: Record<string, string> = {
    Unauthenticated: `check that the private key in ${tokenName} (githubAppPrivateKey) is one of App ${id}, and the time of this machine`,
    NotFound: `install App ${id} in ${repository}`,
    Refused: `check the installation of App ${id} in ${repository}`,
    InvalidInput: `install App ${id} in ${repository} with the permissions that it needs`,
  };
  if (!isSluiceError(error)) return error;
  const step = next[error.code];
  if (step === undefined) return error;
  const { code, details } = error;
  // Octokit signs with the key itself.
  const message = error.message.replace(invalidTokenText(tokenName), 'the host does not accept the App');
  // What is missing is the installation, and nothing that a caller asked for.
  return new SluiceError(code === 'NotFound' ? 'Unauthenticated' : code, `${message}; ${step}, ${DOCUMENTATION}`, {
    details,
    cause: error,
  });
}
