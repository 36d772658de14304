import { type LayoutInput, layered } from "./layered";

export interface LayoutRequest {
  readonly id: number;
  readonly input: LayoutInput;
}

declare const self: DedicatedWorkerGlobalScope;

self.onmessage = ({ data }: MessageEvent<LayoutRequest>) => {
  const layout = layered(data.input);
  const { x, y, bends, bendsFrom } = layout;
  self.postMessage({ id: data.id, layout }, [x.buffer, y.buffer, bends.buffer, bendsFrom.buffer] as ArrayBuffer[]);
};
