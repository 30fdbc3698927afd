// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how placeholders are written.
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import { templateParts } from '../../../src/resource/kinds/sluice/message-template.ts';
import { REVIEW_FIELDS, type ReviewField } from '../../../src/resource/kinds/sluice/review-template.ts';
import { inlineCode, plainLine } from './quote.ts';
import { upstreamOf } from './read-proposal.ts';

const DEFAULT_TITLE = 'Publish ${package} (${workspace})';
const MAX_TITLE_CHARACTERS = 200;
const MAX_BODY_CHARACTERS = 8000;

/** The title of the pull request of a proposal, and the text in front of the section of Sluice, by the templates of the policy. */
export function textsOf(
  { name, namespace, key, kptfile, record }: Pick<Revision, 'name' | 'namespace' | 'key' | 'kptfile' | 'record'>,
  { policy, titleTemplate = DEFAULT_TITLE, bodyTemplate = '' }: ReviewPolicy,
): { readonly title: string; readonly body: string } {
  const { repository, package: path, workspace } = key;
  const values: Readonly<Record<ReviewField, string>> = {
    ...{ name, namespace, repository, package: path, workspace, policy },
    proposer: record?.steps.findLast(({ action }) => action === 'propose')?.by ?? '',
    upstream: upstreamOf(kptfile) ?? '',
  };
  // Values are texts of users: they are no Markdown, and no part of another placeholder.
  const filled = (template: string, quote: (value: string) => string) =>
    templateParts(template, REVIEW_FIELDS)
      .map((part) => ('text' in part ? part.text : part.isKnown ? quote(values[part.field as ReviewField]) : ''))
      .join('');
  return {
    title: plainLine(filled(titleTemplate, plainLine), MAX_TITLE_CHARACTERS),
    body: filled(bodyTemplate, inlineCode).slice(0, MAX_BODY_CHARACTERS),
  };
}
