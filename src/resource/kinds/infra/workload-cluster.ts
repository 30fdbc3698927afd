import { z } from 'zod';
import { defineKind } from '../../schema/define-kind.ts';
import { AGE_COLUMN, NAME_COLUMN } from '../common/columns.ts';
import { conditionsSchema } from '../common/condition-schema.ts';

const MAX_CNIS = 50;

/** Nephio's description of a cluster. Package variants inject it, and sets of them select clusters by it; Sluice does nothing else with it. */
export const workloadClusterKind = defineKind({
  group: 'infra.nephio.org',
  version: 'v1alpha1',
  kind: 'WorkloadCluster',
  plural: 'workloadclusters',
  categories: ['nephio'],
  description:
    'A cluster that packages are specialized for. Package variants can inject it, and sets of them select clusters by it.',
  spec: z
    .object({
      clusterName: z.string().min(1).max(253).describe('Name of the cluster.'),
      cnis: z
        .array(z.string().max(253))
        .max(MAX_CNIS)
        .optional()
        .describe('Plugins for container networks that the cluster has, such as macvlan.'),
      masterInterface: z
        .string()
        .max(253)
        .optional()
        .describe('Network interface of the nodes that additional networks are attached to.'),
    })
    .describe('Properties of the cluster.'),
  status: z.object({ conditions: conditionsSchema.optional() }).describe('Observed state of the cluster.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Cluster',
      type: 'string',
      jsonPath: '.spec.clusterName',
      value: ({ spec }) => spec.clusterName,
    },
    {
      name: 'Interface',
      type: 'string',
      priority: 1,
      jsonPath: '.spec.masterInterface',
      value: ({ spec }) => spec.masterInterface,
    },
    AGE_COLUMN,
  ],
});
