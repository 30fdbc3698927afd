import type { GitHubJson } from './github-json.ts';
import type { GitHubRepository } from './github-repository.ts';

export const REPOSITORY = '/repos/{owner}/{repo}';

/** A response with another status than 2xx. */
export class Failure extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

export interface Call {
  readonly repository: GitHubRepository;
  /** Values of the template. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
  readonly user: string;
  /** The App, if one authenticates. */
  readonly app: number | undefined;
  readonly json: GitHubJson;
  /** Finds the repository of a user, for pull requests from forks. */
  readonly repositoryOf: (owner: string) => GitHubRepository | undefined;
}

export interface Result {
  readonly status?: number;
  readonly body: unknown;
  /** All entries of a list, of which the response has one page. */
  readonly entries?: readonly unknown[];
}

export interface Route {
  /** `<permission>:<access>`, as GitHub names them. */
  readonly needs: string | ((of: Pick<Call, 'repository' | 'path'>) => string);
  readonly handle: (call: Call) => Result;
}

export function list<Entry>(all: readonly Entry[], query: URLSearchParams, render: (entry: Entry) => unknown): Result {
  return { body: pageOf(all, query).map(render), entries: all };
}

export function pageOf<Entry>(all: readonly Entry[], query: URLSearchParams): readonly Entry[] {
  const size = Math.min(Number(query.get('per_page') ?? '30'), 100);
  const page = Number(query.get('page') ?? '1');
  return all.slice((page - 1) * size, page * size);
}
