// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how placeholders are written.
import { expect, test } from 'vitest';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import { reviewTemplateSchema } from '../../../src/resource/kinds/sluice/review-template.ts';
import { textsOf } from './opening-texts.ts';

const REVIEW = { policy: 'shops' } as ReviewPolicy;

function revision(workspace: string) {
  const steps = [{ action: 'propose', by: '@berta', face: 'api', at: '2026-01-01T00:00:00Z' }];
  return {
    ...{ name: 'apps.shop.v1', namespace: 'default', kptfile: undefined },
    key: { namespace: 'default', repository: 'apps', package: 'shop', workspace },
    record: { steps },
  } as unknown as Parameters<typeof textsOf>[0][number];
}

test('without templates the title names the package, and there is no further text', () => {
  expect(textsOf([revision('v1')], REVIEW)).toEqual({ title: 'Publish shop (v1)', body: '' });
});

test('placeholders stand for fields of the proposal, as code in the text', () => {
  const templates = {
    titleTemplate: 'feat($${x}): ${package} ${workspace}',
    bodyTemplate: 'By ${proposer}, ${policy}\n\n@team',
  };
  expect(textsOf([revision('v1')], { ...REVIEW, ...templates })).toEqual({
    title: 'feat(${x}): shop v1',
    body: 'By `@berta`, `shops`\n\n@team',
  });
});

test('values in a title, which a merge makes a commit message, mention no user and close no issue', () => {
  const titleTemplate = '${workspace} by ${proposer}, for #7';
  const { title } = textsOf([revision('fixes-#1')], { ...REVIEW, titleTemplate });
  expect(title).toBe('fixes-＃1 by ＠berta, for #7');
});

test('hostile values stay text', () => {
  const templates = { titleTemplate: '${workspace}', bodyTemplate: '${workspace}' };
  const { title, body } = textsOf([revision('`\n<b>${policy}\u001b[31m\u202e')], { ...REVIEW, ...templates });
  expect(title).toMatch(/^` <b>\$\{policy\}[^\u001b\u202e]*$/);
  expect(body).toMatch(/^`[^`\n\u001b\u202e]*`$/);
});

test.each([
  ['${unknown}', /known are name, namespace/],
  ['${name', /has a placeholder/],
  ['<!-- sluice:begin proposal=x -->', /must not contain/],
  ['${name}'.repeat(33), /at most 32 placeholders/],
  ['x'.repeat(5000), /5000|4000|<=/],
])('a template is checked: %s', (text, message) => {
  expect(reviewTemplateSchema(4000).safeParse(text).error?.issues[0]?.message).toMatch(message);
});
