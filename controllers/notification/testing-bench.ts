import { HostRules } from '../../src/git/network/host-rules.ts';
import { eventKind } from '../../src/resource/kinds/core/event.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { notificationKind } from '../../src/resource/kinds/sluice/notification.ts';
import { objectBench } from '../testing-objects.ts';
import { type NotificationOptions, notificationController } from './notification-controller.ts';
import { postToHost } from './post-to-host.ts';

const HOSTS = { hosts: new HostRules(['127.0.0.1']) };

/** Objects in memory with the controller of Notifications, which posts to receivers on this machine. */
export function bench(options: Partial<NotificationOptions> = {}) {
  const objects = objectBench();
  const { client, manager } = objects;
  manager.addController(
    notificationController({ client, clock: objects.clock, post: postToHost(HOSTS), timeoutMs: 500, ...options }),
  );
  let number = 0;
  return {
    ...objects,
    record(
      reason: string,
      message = '',
      part: { namespace?: string; kind?: string; name?: string; type?: 'Warning' } = {},
    ) {
      const { namespace = 'default', kind = 'DeliveryTarget', name = 'east', type = 'Normal' as const } = part;
      number += 1;
      return client.create(eventKind, {
        metadata: { name: `e${number}`, namespace },
        involvedObject: { apiVersion: 'sluice.dev/v1alpha1', kind, namespace, name },
        ...{ type, reason, message, count: 1, lastTimestamp: new Date().toISOString() },
        reportingComponent: 'controller:delivery',
      });
    },
    notify: (name: string, spec: object) =>
      client.create(notificationKind, { metadata: { name }, spec: { events: [{}], ...spec } }),
    status: async (name: string) => (await client.get(notificationKind, { name })).status,
    secret: (name: string, stringData: Record<string, string>) =>
      client.create(secretKind, { metadata: { name }, stringData }),
  };
}
