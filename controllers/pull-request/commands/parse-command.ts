import { isCommandComment } from '../../../src/forge/comments/closing-comment.ts';
import { nearMisses } from '../../../src/foundation/text/near-misses.ts';
import { plainLine } from '../text/quote.ts';

/** A command in a comment. */
export type Command =
  | { readonly verb: 'why' | 'approve' | 'rerun' }
  | { readonly verb: 'reject'; readonly reason: string }
  | {
      readonly verb: 'set';
      readonly type: string;
      readonly status: 'True' | 'False' | 'Unknown';
      readonly message: string;
    };

/** What a comment requests: a command, or one that cannot be read, with the reason. */
export type ParsedCommand = {
  /** The package revision that it names; undefined if it is for all of the pull request. */
  readonly target?: string;
} & ({ readonly command: Command } | { readonly problem: string });

export const USAGE = [
  '/sluice why',
  '/sluice approve',
  '/sluice reject <reason>',
  // Without vertical bars, which tables of Markdown cannot have in code.
  '/sluice set <condition> <True, False or Unknown> <message>',
  '/sluice rerun',
] as const;

const MAX_LINE_CHARACTERS = 2000;
const MAX_TEXT_CHARACTERS = 500;
const VERBS = ['why', 'approve', 'reject', 'set', 'rerun', 'adopt'];
const STATUSES = ['True', 'False', 'Unknown'] as const;

/**
 * The command in the first line of a comment; undefined if there is none. Quotes of other comments and code are none. In a pull request that
 * several package revisions share, which are given by their names, the word after the verb can be one of them.
 */
export function parseCommand(body: string, names: readonly string[] = []): ParsedCommand | undefined {
  const [line = ''] = body.split('\n', 1);
  if (!isCommandComment(line)) return undefined;
  if (line.length > MAX_LINE_CHARACTERS)
    return { problem: `the line has more than ${MAX_LINE_CHARACTERS} characters; shorten it` };
  const [, written = '', ...all] = line.trim().split(/\s+/);
  const verb = written.toLowerCase();
  const [named = ''] = all;
  const target = names.includes(named) ? { target: named } : {};
  if ('target' in target) return { ...target, ...parseWords(verb, all.slice(1)) };
  const [repository = ''] = names[0]?.split('.') ?? [];
  if (names.length > 0 && named.startsWith(`${repository}.`) && named.split('.').length > 2)
    return { problem: `${plainLine(named)} is not proposed in this pull request` };
  return parseWords(verb, all);
}

function parseWords(verb: string, words: readonly string[]): ParsedCommand {
  const text = (from: number) => plainLine(words.slice(from).join(' '), MAX_TEXT_CHARACTERS).trim();
  switch (verb) {
    case 'why':
    case 'approve':
    case 'rerun':
      if (words.length > 0) return { problem: `/sluice ${verb} takes no further words` };
      return { command: { verb } };
    case 'reject':
      if (text(0) === '') return { problem: 'a reason is missing: /sluice reject <reason>' };
      return { command: { verb, reason: text(0) } };
    case 'set': {
      const [type, word = ''] = words;
      const status = STATUSES.find((known) => known.toLowerCase() === word.toLowerCase());
      if (type === undefined || status === undefined)
        return { problem: 'it is /sluice set <condition>, then True, False or Unknown, then a message' };
      return { command: { verb, type, status, message: text(2) } };
    }
    case 'adopt':
      return {
        problem:
          '/sluice adopt is for pull requests of users, whose packages it makes drafts; those of this pull request are proposed already',
      };
    default:
      return { problem: `there is no such command${meantBy(verb)}; the commands are ${USAGE.join(', ')}` };
  }
}

function meantBy(verb: string): string {
  const [near] = nearMisses(verb, VERBS, 1);
  return near === undefined ? '' : ` (did you mean /sluice ${near}?)`;
}
