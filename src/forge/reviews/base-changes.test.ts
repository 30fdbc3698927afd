import { expect, test } from 'vitest';
import type { Review } from '../forge.ts';
import { ofPresentBase } from './base-changes.ts';

const review = (state: Review['state'], submittedAt: string): Review => ({
  ...{ id: '1', author: 'anna', state, commit: 'a', url: 'https://git.example.com/1', submittedAt },
});
const CHANGED = '2026-01-01T00:00:05Z';

test.each<[string, Review, string | undefined, string | undefined]>([
  ['without a change', review('approved', CHANGED), undefined, 'a'],
  ['after the change', review('approved', '2026-01-01T00:00:06Z'), CHANGED, 'a'],
  ['in the second of the change', review('approved', CHANGED), CHANGED, undefined],
  ['before the change', review('approved', '2026-01-01T00:00:04Z'), CHANGED, undefined],
  ['without a time', review('approved', ''), CHANGED, undefined],
  ['before a change without a time', review('approved', CHANGED), '', undefined],
  ['a request for changes', review('changes-requested', '2026-01-01T00:00:04Z'), CHANGED, 'a'],
])('the commit of a review where the base is changed: %s', (_, given, changedAt, commit) => {
  expect(ofPresentBase([given], changedAt)).toEqual([{ ...given, commit }]);
});
