import { secretKind } from '../../resource/kinds/core/secret.ts';
import { widgetKind } from '../../resource/schema/testing.ts';
import { ALL_VERBS } from '../../resource/storage/storage.ts';
import { REVIEWS } from './discovery/reviews.ts';
import type { Served } from './discovery/served.ts';

/** A kind of the core group, one of another group with sub-resources, and the reviews. */
export const servedForTests: Served = {
  kinds: [
    { kind: secretKind, verbs: ALL_VERBS, subResources: [] },
    {
      kind: widgetKind,
      verbs: ['get', 'list', 'patch'],
      subResources: [
        { name: 'status', verbs: ['get', 'update'], kind: widgetKind },
        { name: 'token', verbs: ['create'], kind: { group: 'other.example', version: 'v1', kind: 'Token' } },
      ],
    },
  ],
  reviews: REVIEWS,
};
