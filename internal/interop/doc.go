// Package interop holds tests of Spile against the Python package msglc, the original of the msglc format: files
// written by each side are read by the other, and bytes are compared where the format leaves no choice.
//
// The tests run the original as a child process (testdata/driver.py) and use nothing of it but its documented names.
// They need a Python that can import msglc: the one that the environment variable SPILE_PYTHON names, which must then
// work, or else python3. Where there is none they are skipped. Versions are in testdata/requirements.txt:
//
//	python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -r internal/interop/testdata/requirements.txt
//	SPILE_PYTHON=/tmp/venv/bin/python go test ./internal/interop
package interop
