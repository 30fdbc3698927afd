import type { BlockingRule } from '../../../src/package/model/revision/revision-state.ts';
import { inlineCode, plainLine } from './quote.ts';

const MAX_TABLE_CHARACTERS = 4000;
const MAX_MESSAGE_CHARACTERS = 500;

/** The rules that keep a proposal from being published, in one line that begins with what fits into a short one. */
export function rulesLine(rules: readonly BlockingRule[]): string {
  const names = rules.map(({ rule, policy, until }) => {
    const of = policy === undefined ? '' : ` of policy ${policy}`;
    return `${rule}${of}${until === undefined ? '' : ` until ${until}`}`;
  });
  const [first] = rules;
  return rules.length === 1 && first !== undefined
    ? `Blocked by ${names.join()}: ${first.message}`
    : `Blocked by ${rules.length} rules: ${names.join(', ')}`;
}

/** The same as a table in Markdown: which rule, since when, until when, who can resolve it, and why. */
export function rulesTable(rules: readonly BlockingRule[], maxCharacters = MAX_TABLE_CHARACTERS): string {
  let left = maxCharacters;
  const rows: string[] = [];
  for (const { rule, policy, since, until, resolvedBy, message } of rules) {
    const cells = [
      ...[
        inlineCode(policy === undefined ? rule : `${rule} (${policy})`),
        plainLine(since ?? ''),
        plainLine(until ?? ''),
      ],
      ...[inlineCode(resolvedBy, MAX_MESSAGE_CHARACTERS), inlineCode(message, MAX_MESSAGE_CHARACTERS)],
    ];
    const row = `| ${cells.join(' | ')} |`;
    left -= row.length;
    if (left < 0) break;
    rows.push(row);
  }
  const hidden = rules.length - rows.length;
  const more = hidden > 0 ? [`\n${hidden} more rules are not listed.`] : [];
  return ['| Rule | Since | Until | Resolved by | Explanation |', '|---|---|---|---|---|', ...rows, ...more].join('\n');
}
