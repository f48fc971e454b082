"""The lab of ci/softroce: guests with software RDMA devices. docs/softroce-lab.md says what it promises."""
