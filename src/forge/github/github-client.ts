import type { Octokit } from 'octokit';
import type { ZodType } from 'zod';
import { type ErrorCode, isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { cleanText } from '../../foundation/text/clean-text.ts';
import { shorten } from '../../foundation/text/shorten.ts';
import type { ForgeErrorDetails } from '../forge.ts';
import { checkedForm } from '../http/checked-form.ts';
import { ForgeTransport, type ForgeTransportOptions } from '../http/forge-transport.ts';
import { tokenAccount } from '../http/token-account.ts';
import { TokenCache } from '../http/token-cache.ts';
import { callGitHub, octokitOptions, type Send } from './github-call.ts';
import { type AccountToken, githubFetch } from './github-fetch.ts';
import { type GraphqlError, graphqlSchema } from './github-schemas.ts';
import { type AppCredentials, InstallationTokens } from './installation-tokens.ts';

/** What Sluice authenticates with: a token of a user, or an App that is installed in the repository. */
export type GitHubCredentials = { readonly token: string } | { readonly app: AppCredentials };

export interface GitHubClientOptions extends ForgeTransportOptions {
  readonly owner: string;
  readonly name: string;
  /** Called again after a minute, and when the host does not accept them. */
  readonly credentials: (signal: AbortSignal) => Promise<GitHubCredentials>;
  /** True where it merges, which an App needs a further permission for. */
  readonly mayMerge?: boolean;
  /** True where it reads teams, which an App needs a further permission for. */
  readonly usesTeams?: boolean;
  /** True where it opens issues, which an App needs a further permission for: what opens them has to set it. */
  readonly usesIssues?: boolean;
}

interface GraphqlRequest {
  readonly query: string;
  readonly variables: object;
}

/** Calls GitHub's REST API for one repository. Rejects as the contract of `Forge` says. */
export class GitHubClient {
  readonly #transport: ForgeTransport;
  #octokit: Octokit | undefined;
  readonly #credentials: TokenCache<GitHubCredentials>;
  readonly #installations: InstallationTokens;
  readonly #owner: string;

  constructor(options: GitHubClientOptions) {
    const transport = new ForgeTransport({ ...options, besides: [graphqlUrl(options.api)] });
    this.#transport = transport;
    this.#owner = options.owner;
    this.#credentials = new TokenCache(options.credentials, options.now);
    this.#installations = new InstallationTokens({ ...options, transport });
  }

  /** Address of the API, without a slash at the end. */
  get api(): string {
    return this.#transport.api;
  }

  /** Returns the data of a response in the form of a schema. */
  async call<Result>(schema: ZodType<Result>, signal: AbortSignal, send: Send): Promise<Result> {
    try {
      return await callGitHub(this.#transport, await this.#open(), schema, signal, send);
    } catch (error) {
      if (isSluiceError(error, 'Unauthenticated')) {
        this.#credentials.forget();
        this.#installations.forget();
      }
      throw error;
    }
  }

  /**
   * Returns the data of a query or mutation of GraphQL, with nothing in place of what failed with one of the `partial` types of errors. `name` is
   * what messages call it.
   */
  async graphql<Result>(
    schema: ZodType<Result>,
    { name, ...request }: GraphqlRequest & { readonly name: string },
    signal: AbortSignal,
    partial: readonly string[] = [],
  ): Promise<Result> {
    const { data, errors } = await this.partialGraphql(request, signal);
    const [failed, ...others] = errors.filter(({ type }) => !partial.includes(type ?? ''));
    if (failed !== undefined) throw graphqlError(name, failed, others);
    return checkedForm(schema, data, name);
  }

  /** Returns the data of a query of GraphQL as GitHub has it, with null in place of what has failed, and the errors. */
  async partialGraphql(
    { query, variables }: GraphqlRequest,
    signal: AbortSignal,
  ): Promise<{ readonly data: unknown; readonly errors: readonly GraphqlError[] }> {
    const url = graphqlUrl(this.api);
    const { data, errors } = await this.call(graphqlSchema, signal, (_rest, options, request) =>
      request({ method: 'POST', url, query, variables, ...options }),
    );
    return { data, errors: errors ?? [] };
  }

  /** The id of the App; undefined for a token of a user. */
  async app(signal: AbortSignal): Promise<number | undefined> {
    const credentials = await this.#credentials.read(signal);
    return 'app' in credentials ? credentials.app.id : undefined;
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  /** Loaded with the first call: a server without GitHub does not need its memory. */
  async #open(): Promise<Octokit> {
    const { Octokit } = await import('octokit');
    const fetch = githubFetch(this.#transport, (signal) => this.#token(signal));
    this.#octokit ??= new Octokit(octokitOptions(this.#transport, fetch));
    return this.#octokit;
  }

  async #token(signal: AbortSignal): Promise<AccountToken> {
    const credentials = await this.#credentials.read(signal);
    if (!('app' in credentials)) return { token: credentials.token, account: tokenAccount(credentials.token) };
    const token = await this.#installations.token(credentials.app, signal);
    // GitHub limits an installation, of which an App has one for each owner. Names of owners are case-insensitive.
    return { token, account: `app ${credentials.app.id} ${this.#owner.toLowerCase()}` };
  }
}

const GRAPHQL_CODES: Readonly<Record<string, ErrorCode>> = {
  FORBIDDEN: 'Refused',
  INSUFFICIENT_SCOPES: 'Refused',
  NOT_FOUND: 'NotFound',
  /** One query asks for too much. */
  RESOURCE_LIMITS_EXCEEDED: 'LimitExceeded',
};
const MAX_GRAPHQL_MESSAGE_CHARACTERS = 300;

/** GitHub Enterprise Server has it beside the REST API. */
function graphqlUrl(api: string): string {
  const { origin, pathname } = new URL(api);
  const path = pathname.replace(/\/+$/, '').replace(/\/v3$/, '');
  return `${origin}${path}/graphql`;
}

/** The error that the errors of a query are, of which the first one decides. `name` is what the message calls it. */
export function graphqlError(name: string, first: GraphqlError, others: readonly GraphqlError[] = []): SluiceError {
  const text = cleanText([first, ...others].map(({ message }) => message).join('; ')).replaceAll(/\s+/g, ' ');
  const details: ForgeErrorDetails = { status: 200 };
  const message = `${name}: ${shorten(text, MAX_GRAPHQL_MESSAGE_CHARACTERS)}`;
  return new SluiceError(graphqlCode(first), message, { details });
}

/** An error without a type is a failure of GitHub itself, unless it explains what is wrong with the query. */
export function graphqlCode({ type, extensions }: GraphqlError): ErrorCode {
  if (type !== undefined && type !== null) return GRAPHQL_CODES[type] ?? 'InvalidInput';
  return extensions === undefined ? 'Unavailable' : 'InvalidInput';
}
