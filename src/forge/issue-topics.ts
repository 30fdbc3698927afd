import { SluiceError } from '../foundation/sluice-error.ts';
import { type Issue, type IssueChange, type IssueTopic, MAX_ISSUES, type NewIssue } from './forge-issues.ts';

const TOPIC = /^[a-z0-9-]{1,63}$/;
const MARKER = /^<!-- sluice:issue topic=([a-z0-9-]{1,63}) -->(?:\n|$)/;
/** Clocks of hosts and processes that open issues at the same time differ by less. */
const RACE_MS = 60_000;

/** What an adapter does for `ForgeIssues.open` and `find`. Bodies are those of the host, with markers. */
export interface HostIssues {
  /** Issues that changed at or after a time, in any order; may leave out those of others, and those with topics of others. */
  changedSince(since: string, signal: AbortSignal): AsyncIterable<Issue>;
  create(title: string, body: string, signal: AbortSignal): Promise<Issue>;
  update(number: number, change: IssueChange, signal: AbortSignal): Promise<Issue>;
}

/** The body of an issue with the invisible marker of its topic. */
export function withTopic(topic: string, body: string): string {
  if (!TOPIC.test(topic)) throw new SluiceError('Internal', `${topic} is no topic of issues`);
  return `<!-- sluice:issue topic=${topic} -->\n${body}`;
}

/** What the body of an issue has; the topic counts only in one that Sluice opened. */
export function readTopic(text: string, isOwn: boolean): Pick<Issue, 'body' | 'topic'> {
  const normal = text.replaceAll('\r\n', '\n');
  const found = MARKER.exec(normal);
  if (found === null || !isOwn) return { body: normal, topic: undefined };
  return { body: normal.slice(found[0].length), topic: found[1] };
}

/** Implements `ForgeIssues.open`. */
export async function openTopic(issues: HostIssues, wanted: NewIssue, signal: AbortSignal): Promise<Issue> {
  const known = await onlyOne(issues, await allOf(issues, wanted, signal), signal);
  if (known !== undefined) return known;
  const created = await issues.create(wanted.title, withTopic(wanted.topic, wanted.body), signal);
  // Another process can have opened one meanwhile.
  const since = new Date(Date.parse(created.updatedAt) - RACE_MS).toISOString();
  const all = await allOf(issues, { topic: wanted.topic, since }, signal);
  return (await onlyOne(issues, all, signal)) ?? created;
}

/** Implements `ForgeIssues.find`. */
export async function findTopic(
  issues: HostIssues,
  wanted: IssueTopic,
  signal: AbortSignal,
): Promise<Issue | undefined> {
  return (await allOf(issues, wanted, signal))[0];
}

async function allOf(issues: HostIssues, { topic, since }: IssueTopic, signal: AbortSignal): Promise<readonly Issue[]> {
  const found = new Map<number, Issue>();
  for await (const issue of issues.changedSince(since, signal)) {
    if (issue.topic === topic) found.set(issue.number, issue);
  }
  return [...found.values()].sort((one, other) => one.number - other.number);
}

/** The first one stays. The others are closed without their topic, so that this is no decision about it. */
async function onlyOne(
  issues: HostIssues,
  [first, ...others]: readonly Issue[],
  signal: AbortSignal,
): Promise<Issue | undefined> {
  if (first === undefined) return undefined;
  for (const { number } of others) {
    const body = `Another process has opened #${first.number} for the same purpose.`;
    await issues.update(number, { state: 'not-planned', body }, signal);
  }
  return first;
}

/** The entries, up to the limit of a search. Rejects with LimitExceeded behind it. */
export async function* bounded<Entry>(what: string, entries: AsyncIterable<Entry>): AsyncGenerator<Entry> {
  let read = 0;
  for await (const entry of entries) {
    read += 1;
    if (read > MAX_ISSUES) {
      const message = `more than ${MAX_ISSUES} issues of ${what} changed since the time that the search begins at`;
      throw new SluiceError('LimitExceeded', `${message}; search from a later time on`);
    }
    yield entry;
  }
}
