import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';

/** Clients of Porch list the pods of functions. None runs here, so that their lists are empty. */
export const podKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  shortNames: ['po'],
  description: 'A set of containers. This server runs none, and has no objects of this kind.',
  spec: z
    .object({
      containers: z
        .array(
          z.object({
            name: z.string().describe('Name of the container.'),
            image: z.string().optional().describe('Image reference of the container.'),
          }),
        )
        .describe('Containers of the pod.'),
    })
    .describe('Desired behaviour of the pod.'),
  status: z
    .object({ phase: z.string().optional().describe('Lifecycle phase of the pod.') })
    .describe('Observed state of the pod.'),
  printerColumns: [
    NAME_COLUMN,
    { name: 'Status', type: 'string', value: ({ status }) => status?.phase ?? 'Unknown' },
    AGE_COLUMN,
  ],
});
