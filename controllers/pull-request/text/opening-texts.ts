// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how placeholders are written.
import { shorten } from '../../../src/foundation/text/shorten.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import { templateParts } from '../../../src/resource/kinds/sluice/message-template.ts';
import { REVIEW_FIELDS, type ReviewField } from '../../../src/resource/kinds/sluice/review-template.ts';
import { commitLine, inlineCode, plainLine } from './quote.ts';
import { upstreamOf } from './read-proposal.ts';

const DEFAULT_TITLE = 'Publish ${package} (${workspace})';
const MAX_TITLE_CHARACTERS = 200;
const MAX_BODY_CHARACTERS = 8000;
const MAX_VALUES = 3;

type Proposed = Pick<Revision, 'name' | 'namespace' | 'key' | 'kptfile' | 'record'>;

/**
 * The title of the pull request of proposals, and the text in front of the section of Sluice, by the templates of the policy. Where values of
 * several proposals differ, a placeholder stands for the first ones.
 */
export function textsOf(
  proposed: readonly Proposed[],
  { policy, titleTemplate = DEFAULT_TITLE, bodyTemplate = '' }: ReviewPolicy,
): { readonly title: string; readonly body: string } {
  const each = (read: (one: Proposed) => string) => listed(proposed.map(read));
  const values: Readonly<Record<ReviewField, string>> = {
    ...{ name: each(({ name }) => name), namespace: each(({ namespace }) => namespace), policy },
    ...{ repository: each(({ key }) => key.repository), package: each(({ key }) => key.package) },
    workspace: each(({ key }) => key.workspace),
    proposer: each(({ record }) => record?.steps.findLast(({ action }) => action === 'propose')?.by ?? ''),
    upstream: each(({ kptfile }) => upstreamOf(kptfile) ?? ''),
  };
  // Values are texts of users: they are no Markdown, and no part of another placeholder.
  const filled = (template: string, quote: (value: string) => string) =>
    templateParts(template, REVIEW_FIELDS)
      .map((part) => ('text' in part ? part.text : part.isKnown ? quote(values[part.field as ReviewField]) : ''))
      .join('');
  return {
    // A user who merges it makes the title a commit message; what the policy refers to is meant so.
    title: plainLine(filled(titleTemplate, commitLine), MAX_TITLE_CHARACTERS),
    body: shorten(filled(bodyTemplate, inlineCode), MAX_BODY_CHARACTERS),
  };
}

function listed(values: readonly string[]): string {
  const distinct = [...new Set(values)];
  const more = distinct.length - MAX_VALUES;
  return more > 0 ? `${distinct.slice(0, MAX_VALUES).join(', ')} and ${more} more` : distinct.join(', ');
}
