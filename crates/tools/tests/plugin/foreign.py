"""A plugin by hand: go-plugin's handshake, and the services by grpcio. Shares no code with the
host; the messages are generated from the protocol by protobuf's own compiler."""

import json
import os
import sys
import threading
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

import go_plugin_pb2
import go_plugin_pb2_grpc
import plugin_pb2 as pb
import plugin_pb2_grpc as services

stopped = threading.Event()
config = {}


class Plugin(services.PluginServiceServicer):
    def GetInfo(self, request, context):
        return pb.GetInfoResponse(name="foreign", version="1.0.0", capabilities=["operations"])

    def Init(self, request, context):
        config.update({name: json.loads(text) for name, text in request.config.items()})
        return pb.InitResponse()

    def Shutdown(self, request, context):
        return pb.ShutdownResponse()


def value(name, kind, **more):
    return pb.InputSchema(name=name, type=kind, **more)


GREET = pb.OperationSchema(
    name="greet",
    description="Greets somebody",
    inputs=[
        value("name", "string", required=True, description="Whom"),
        value("times", "integer", default="1"),
        value("page", "string", validation="url"),
        value("tags", "array", default='["a"]'),
        value("more", "object"),
        value("sure", "boolean", default="false"),
        value("share", "number", default="0.5"),
    ],
    outputs=[pb.OutputSchema(name="greeting", type="string")],
)
OTHERS = [pb.OperationSchema(name=name) for name in ("fail", "raise")]


class Operations(services.OperationServiceServicer):
    def ListOperations(self, request, context):
        return pb.ListOperationsResponse(operations=[GREET, *OTHERS])

    def Execute(self, request, context):
        inputs = {name: json.loads(text) for name, text in request.inputs.items()}
        if request.operation == "fail":
            return pb.ExecuteResponse(success=False, error="it always does")
        if request.operation == "raise":
            raise RuntimeError("oh")
        print("greeting", inputs["name"], file=sys.stderr, flush=True)
        greeting = f"{config['greeting']} {inputs['name']}{'!' if config['loud'] else ''}"
        data = {"greeting": " ".join([greeting] * inputs.get("times", 1)), "inputs": inputs}
        data = {name: json.dumps(item).encode() for name, item in data.items()}
        return pb.ExecuteResponse(success=True, output="greeted", data=data)


class Controller(go_plugin_pb2_grpc.GRPCControllerServicer):
    def Shutdown(self, request, context):
        stopped.set()
        return go_plugin_pb2.Empty()


def main():
    if os.environ.get("AWF_PLUGIN") != "awf-plugin-v1":
        sys.exit("This binary is a plugin. These are not meant to be executed directly.")
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    checks = health.HealthServicer()
    checks.set("plugin", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    services.add_PluginServiceServicer_to_server(Plugin(), server)
    services.add_OperationServiceServicer_to_server(Operations(), server)
    go_plugin_pb2_grpc.add_GRPCControllerServicer_to_server(Controller(), server)
    path = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "foreign")
    server.add_insecure_port(f"unix:{path}")
    server.start()
    print(f"1|1|unix|{path}|grpc|", flush=True)
    stopped.wait()
    server.stop(grace=0.5).wait()


main()
