import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { InvalidObjectDetails } from '../object/invalid-object.ts';
import { defineKind } from './define-kind.ts';
import type { ObjectOf } from './kind.ts';

/** A kind for tests, with everything that a kind can have. */
export const widgetKind = widgetKindOf('test.sluice.dev');

/** The same kind in another API group. */
export function widgetKindOf(group: string) {
  return defineKind({
    group,
    version: 'v1',
    kind: 'Widget',
    plural: 'widgets',
    shortNames: ['wd'],
    description: 'Something to test with.',
    spec: z.object({
      size: z.int().default(1),
      color: z.enum(['red', 'green', 'blue']).optional(),
      parts: z.array(z.object({ name: z.string() })).optional(),
    }),
    status: z.object({ ready: z.boolean().optional(), note: z.string().optional() }),
    selectableFields: [{ path: 'spec.size' }, { path: 'spec.color', values: ['red', 'green', 'blue'] }],
  });
}

export type Widget = ObjectOf<typeof widgetKind>;

/** The causes that an action is refused with, as `field: message`. */
export function thrownCauses(action: () => unknown): string[] {
  try {
    action();
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return (error.details as InvalidObjectDetails).causes.map(({ field, message }) => `${field}: ${message}`);
  }
  throw new Error('no error');
}
