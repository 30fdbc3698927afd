import { isSluiceError } from '../../foundation/sluice-error.ts';
import { withoutNotFoundText } from '../http/error-texts.ts';

export interface Reviewers {
  readonly users: readonly string[];
  readonly teams: readonly string[];
}

/** The form that GitHub and Gitea have for it. */
export interface ReviewersBody {
  readonly reviewers?: string[];
  readonly team_reviewers?: string[];
}

/** For `Forge.requestReviewers`: all with one request, and one by one where the host refuses that, since it then refuses all of them. */
export async function requestReviewers(
  { users, teams }: Reviewers,
  request: (body: ReviewersBody) => Promise<unknown>,
): Promise<{ readonly name: string; readonly reason: string }[]> {
  const each = [
    ...users.map((name) => ({ name, body: { reviewers: [name] } })),
    ...teams.map((name) => ({ name, body: { team_reviewers: [name] } })),
  ];
  if (each.length > 1) {
    const all = {
      ...(users.length === 0 ? {} : { reviewers: [...users] }),
      ...(teams.length === 0 ? {} : { team_reviewers: [...teams] }),
    };
    if ((await refusalOf(request(all))) === undefined) return [];
  }
  const refused: { name: string; reason: string }[] = [];
  for (const { name, body } of each) {
    const reason = await refusalOf(request(body));
    if (reason !== undefined) refused.push({ name, reason });
  }
  return refused;
}

async function refusalOf(requested: Promise<unknown>): Promise<string | undefined> {
  try {
    await requested;
    return undefined;
  } catch (error) {
    if (!isSluiceError(error) || !['InvalidInput', 'NotFound', 'Refused'].includes(error.code)) throw error;
    // The pull request is there, so that it is the reviewer that is not.
    return error.code === 'NotFound'
      ? `the host has not found it: ${withoutNotFoundText(error.message)}`
      : error.message;
  }
}
